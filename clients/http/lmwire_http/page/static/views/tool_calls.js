// The tool calls of an answer. The user allows those of MCP servers, and enters the results of others: nothing runs by itself.
import { asSentence } from "../conversation/advice.js";
import { html, useChanges, useState } from "./html.js";

export function ToolCalls({ message, isRunning, isLast, state: { answering, tools, toolRuns } }) {
  const calls = message.calls?.filter(Boolean) ?? [];
  const [results, setResults] = useState([]);
  useChanges(tools);
  if (!calls.length) return null;
  const isOpen = isLast && !isRunning && message.finish === "tool_calls";
  const isBroken = !isRunning && message.finish !== "tool_calls";
  const isManual = (call) => isOpen && !tools.find(call.name) && !call.outcome;
  const count = calls.filter(isManual).length;
  const send = (event) => {
    event.preventDefault();
    answering.giveResults(message, calls.map((call, index) => call.outcome ?? { text: results[index] ?? "" }));
  };
  return html`<form class="calls" onSubmit=${send}>
    ${calls.map((call, index) => {
      const tool = tools.find(call.name);
      return html`<div class="call" data-call=${call.name}>
        <p class="call-name">Calls <code>${tool?.tool ?? call.name}</code>${tool && html` of <code>${tool.server}</code>`}</p>
        <pre tabindex="0" role="group" aria-label="Arguments of ${call.name}"><code>${indented(call.arguments)}</code></pre>
        ${isOpen && tool && html`<${Permission} message=${message} call=${call} toolRuns=${toolRuns} />`}
        ${isManual(call) &&
        html`<label>Result of ${call.name}<textarea rows="2" value=${results[index] ?? ""} onInput=${({ target }) => setResults(Object.assign([...results], { [index]: target.value }))} /></label>`}
      </div>`;
    })}
    ${isBroken && html`<p class="note">The model has not finished this call. Nothing should run it.</p>`}
    ${count > 0 && html`<button type="submit" class="primary" data-action="results" disabled=${!calls.every((call) => call.outcome || isManual(call))}>Send ${count > 1 ? "results" : "result"}</button>`}
  </form>`;
}

/** The question whether a call may run, its run, and its end. */
function Permission({ message, call, toolRuns }) {
  if (toolRuns.isRunning(call)) return html`<p class="faint" role="status"><span class="spinner" /> Running…</p>`;
  if (call.outcome) return html`<p class="faint">${endOf(call.outcome)}</p>`;
  return html`${call.problem && html`<p class="problem" role="alert">${asSentence(call.problem)}</p>`}
    <div class="buttons">
      <button type="button" class="primary" data-action="allow" onClick=${() => toolRuns.allow(message, call, false)}>Allow once</button>
      <button type="button" data-action="always" onClick=${() => toolRuns.allow(message, call, true)}>Always in this chat</button>
      <button type="button" data-action="refuse" onClick=${() => toolRuns.refuse(message, call)}>Refuse</button>
    </div>`;
}

function endOf({ isError, isRefused }) {
  if (isRefused) return "Refused.";
  return isError ? "The tool has failed." : "Done.";
}

export function ToolResult({ message }) {
  return html`<article class="message tool" data-role="tool">
    <details>
      <summary>${message.isError ? "Error" : "Result"} of <code>${message.name}</code></summary>
      <pre tabindex="0" role="group" aria-label="Result of ${message.name}"><code>${message.content}</code></pre>
    </details>
  </article>`;
}

/** Return JSON with line breaks; a text that is incomplete as it is. */
function indented(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}
