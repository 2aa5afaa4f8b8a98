// An answer of a model: its reasoning, its text, its tool calls, and what can be done with it.
import { asSentence } from "../conversation/advice.js";
import { figuresOf } from "../conversation/figures.js";
import { THIS_TAB } from "../conversation/tabs.js";
import { loadProgress } from "../server/models.js";
import { Observable } from "../observable.js";
import { announce } from "./announcer.js";
import { CopyButton } from "./copy.js";
import { html, useChanges, useRef } from "./html.js";
import { IconButton } from "./icons.js";
import { Markdown } from "./markdown.js";
import { shortName } from "./model_picker.js";
import { ToolCalls } from "./tool_calls.js";
import { Versions } from "./versions.js";

const STILL = new Observable(); // what a finished answer listens to

/**
 * @param isChosen Whether the conversation goes on with this one of several answers; undefined if it stands alone.
 */
export function Answer({ message, state, isLast, isChosen }) {
  const isRunning = message.state === "running" && Boolean(message.tab === THIS_TAB || message.isLive);
  const isNew = useRef(isRunning); // one that was complete when it came into view is not read out
  useChanges(message.state === "running" ? state.conversations.contents : STILL);
  return html`<article class="message answer" data-role="assistant" data-state=${isRunning ? "running" : stateOf(message)} aria-busy=${isRunning}>
    <h2 class="answer-name">${shortName(message.model)}</h2>
    <${Reasoning} message=${message} isRunning=${isRunning} />
    <${Markdown} text=${message.content} isComplete=${!isRunning} onBlock=${(text) => isNew.current && announce(text)} />
    <${ToolCalls} message=${message} isRunning=${isRunning} isLast=${isLast} state=${state} />
    ${isRunning ? html`<${Waiting} message=${message} models=${state.models} />` : html`<${End} message=${message} state=${state} isLast=${isLast} isChosen=${isChosen} />`}
  </article>`;
}

/** Return the state of an answer that does not grow: one that was running when its page went away is interrupted. */
function stateOf({ state }) {
  return state === "running" ? "interrupted" : state;
}

function Reasoning({ message: { reasoning, content, calls }, isRunning }) {
  if (!reasoning) return null;
  const isGrowing = isRunning && !content && !calls?.length;
  return html`<details class="reasoning">
    <summary>${isGrowing ? html`<span class="spinner" /> Reasoning…` : "Reasoning"}</summary>
    <${Markdown} text=${reasoning} isComplete=${!isGrowing} />
  </details>`;
}

function Waiting({ message, models }) {
  useChanges(models);
  if (message.content || message.reasoning || message.calls?.length) return null;
  const { text, value } = waitingFor(message, models.get(message.model));
  return html`<p class="waiting" role="status">
    <span class="spinner" />
    <span>${text}${value !== null && ` ${Math.round(value * 100)} %`}</span>
    ${value !== null && html`<progress aria-label=${text} max="1" value=${value} />`}
  </p>`;
}

function waitingFor({ promptProgress }, model) {
  const load = loadProgress(model);
  if (load) return { text: `${load.text} the model`, value: load.value };
  if (promptProgress) return { text: "Reading the prompt", value: promptProgress.processed / promptProgress.total };
  return { text: "Waiting for the model", value: null };
}

function End({ message, state, isLast, isChosen }) {
  const { conversations, answering, models } = state;
  const isBusy = Boolean(answering.current);
  const { problem } = message;
  const note = !problem && noteOf(message);
  return html`
    ${note && html`<p class="note">${note}</p>`}
    ${problem && html`<${Problem} message=${message} state=${state} isLast=${isLast} />`}
    <footer class="actions">
      ${isChosen === undefined && html`<${Versions} message=${message} conversations=${conversations} />`}
      ${isChosen === false && html`<button type="button" class="quiet" data-action="use" onClick=${() => conversations.show(message)}>Go on with this answer</button>`}
      ${isChosen && html`<span class="faint">The chat goes on with this answer</span>`}
      ${message.content && html`<${CopyButton} label="Copy answer" text=${message.content} />`}
      <${IconButton} icon="again" label="Regenerate answer" disabled=${isBusy} onClick=${() => answering.regenerate(message)} />
      ${isLast && html`<${IconButton} icon="columns" label="Another answer beside this one" data-action="beside" onClick=${() => answering.answerBeside(message)} />`}
      ${isLast && canContinue(message) && html`<button type="button" class="quiet" data-action="continue" disabled=${isBusy} onClick=${() => answering.continue(message)}>Continue</button>`}
      <${Figures} message=${message} models=${models} />
    </footer>
  `;
}

/** The cause of a failure, what the user can do about it, and the buttons that do it. */
function Problem({ message, state: { answering, conversations }, isLast }) {
  const { problem, advice, content, remedies = [] } = message;
  const does = {
    new: () => conversations.open(""),
    choose: () => document.getElementById("models").showPopover(),
    retry: () => answering.retry(message),
    truncate: () => answering.truncate(message),
  };
  const mayRetry = isLast && !content;
  const isAgain = (action) => ["retry", "truncate"].includes(action);
  const offered = remedies.filter(({ action }) => mayRetry || !isAgain(action));
  return html`<div class="problem" role="alert">
    <p>${asSentence(problem)} ${advice && html`<strong>${advice}</strong>`}</p>
    ${offered.length > 0 &&
    html`<div class="remedies">
      ${offered.map(({ action, label }) => html`<button type="button" data-action=${action} disabled=${Boolean(answering.current) && isAgain(action)} onClick=${does[action]}>${label}</button>`)}
    </div>`}
  </div>`;
}

/** Return whether an answer was cut off in its text. A call or its reasoning cannot be continued. */
function canContinue(message) {
  const isCut = stateOf(message) !== "done" || ["length", "capacity"].includes(message.finish);
  return isCut && Boolean(message.content) && !message.calls?.length;
}

function noteOf(message) {
  if (stateOf(message) === "interrupted") return "This answer was interrupted.";
  if (message.state === "stopped") return "Stopped.";
  return message.finish === "length" ? "The answer has reached its limit of tokens, which the settings can raise." : "";
}

function Figures({ message, models }) {
  useChanges(models); // the length of the context is known once the model is loaded
  const model = models.get(message.model);
  const figures = figuresOf(message, model?.context_length);
  if (!figures.length) return null;
  return html`<dl class="figures">
    ${figures.map(([name, value, hint]) => html`<div title=${hint}><dt class="visually-hidden">${name}</dt><dd data-figure=${name}>${value}</dd></div>`)}
  </dl>`;
}
