// An answer of a model: its reasoning, its text, its tool calls, and what can be done with it.
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

export function Answer({ message, state, isLast }) {
  const isRunning = message.state === "running" && Boolean(message.tab === THIS_TAB || message.isLive);
  const isNew = useRef(isRunning); // one that was complete when it came into view is not read out
  useChanges(message.state === "running" ? state.conversations.contents : STILL);
  return html`<article class="message answer" data-role="assistant" data-state=${isRunning ? "running" : stateOf(message)} aria-busy=${isRunning}>
    <h2 class="answer-name">${shortName(message.model)}</h2>
    <${Reasoning} message=${message} isRunning=${isRunning} />
    <${Markdown} text=${message.content} isComplete=${!isRunning} onBlock=${(text) => isNew.current && announce(text)} />
    <${ToolCalls} message=${message} isRunning=${isRunning} isLast=${isLast} answering=${state.answering} />
    ${isRunning ? html`<${Waiting} message=${message} models=${state.models} />` : html`<${End} message=${message} state=${state} isLast=${isLast} />`}
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

function End({ message, state, isLast }) {
  const { conversations, answering, models } = state;
  const isBusy = Boolean(answering.current);
  const { problem, advice, content } = message;
  const note = !problem && noteOf(message);
  return html`
    ${note && html`<p class="note">${note}</p>`}
    ${problem && html`<p class="problem" role="alert">${advice && html`<strong>${advice}</strong> `}${problem}</p>`}
    <footer class="actions">
      <${Versions} message=${message} conversations=${conversations} />
      ${message.content && html`<${CopyButton} label="Copy answer" text=${message.content} />`}
      <${IconButton} icon="again" label="Regenerate answer" disabled=${isBusy} onClick=${() => answering.regenerate(message)} />
      ${isLast && problem && !content && html`<button type="button" class="quiet" data-action="retry" disabled=${isBusy} onClick=${() => answering.retry(message)}>Try again</button>`}
      ${isLast && canContinue(message) && html`<button type="button" class="quiet" data-action="continue" disabled=${isBusy} onClick=${() => answering.continue(message)}>Continue</button>`}
      <${Figures} message=${message} models=${models} />
    </footer>
  `;
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
