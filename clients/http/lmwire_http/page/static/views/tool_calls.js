// The tool calls of an answer. The user runs the tool and enters its result, since a page runs nothing by itself.
import { html, useState } from "./html.js";

export function ToolCalls({ message, isRunning, isLast, answering }) {
  const calls = message.calls?.filter(Boolean) ?? [];
  const [results, setResults] = useState([]);
  if (!calls.length) return null;
  const isOpen = isLast && !isRunning && message.finish === "tool_calls";
  const isBroken = !isRunning && message.finish !== "tool_calls";
  const send = (event) => {
    event.preventDefault();
    answering.giveResults(message, calls.map((_, index) => results[index] ?? ""));
  };
  return html`<form class="calls" onSubmit=${send}>
    ${calls.map(
      (call, index) => html`<div class="call" data-call=${call.name}>
        <p class="call-name">Calls <code>${call.name}</code></p>
        <pre tabindex="0" role="group" aria-label="Arguments of ${call.name}"><code>${indented(call.arguments)}</code></pre>
        ${isOpen &&
        html`<label>Result of ${call.name}<textarea rows="2" value=${results[index] ?? ""} onInput=${({ target }) => setResults(Object.assign([...results], { [index]: target.value }))} /></label>`}
      </div>`,
    )}
    ${isBroken && html`<p class="note">The model has not finished this call. Nothing should run it.</p>`}
    ${isOpen && html`<button type="submit" class="primary" data-action="results">Send ${calls.length > 1 ? "results" : "result"}</button>`}
  </form>`;
}

export function ToolResult({ message }) {
  return html`<article class="message tool" data-role="tool">
    <details>
      <summary>Result of <code>${message.name}</code></summary>
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
