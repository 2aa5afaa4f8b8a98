// The choice of MCP tools for a chat, by their servers.
import { asSentence } from "../conversation/advice.js";
import { html, useChanges, useLayoutEffect } from "./html.js";
import { Dialog } from "./dialog.js";

const POLL_MS = 1000;

export function ToolsDialog({ state: { tools, toolRuns }, onClose }) {
  useChanges(tools);
  useLayoutEffect(() => {
    const timer = setInterval(() => tools.refresh(), POLL_MS); // servers start, and may end
    tools.refresh();
    return () => clearInterval(timer);
  }, []);
  const chosen = new Set(toolRuns.chosen());
  const choose = (names, isChosen) => {
    for (const name of names) isChosen ? chosen.add(name) : chosen.delete(name);
    toolRuns.choose([...chosen]);
  };
  return html`<${Dialog} title="Tools" onClose=${onClose}>
    <p class="faint">The model may ask for the tools that you choose for this chat. You are asked before each call.</p>
    ${tools.servers.map((server) => html`<${Server} key=${server.name} server=${server} chosen=${chosen} choose=${choose} />`)}
  <//>`;
}

function Server({ server: { name, state, problem, tools, left_out: leftOut }, chosen, choose }) {
  const names = tools.map((tool) => tool.name);
  const areAll = names.length > 0 && names.every((each) => chosen.has(each));
  return html`<fieldset data-server=${name} data-state=${state}>
    <legend>${name}</legend>
    ${state === "starting" && html`<p class="faint" role="status"><span class="spinner" /> Starting…</p>`}
    ${problem && html`<p class="problem">${asSentence(`The server ${problem}`)} It is tried again.</p>`}
    ${names.length > 1 && html`<label class="check"><input type="checkbox" checked=${areAll} onChange=${({ target }) => choose(names, target.checked)} />All ${names.length} tools</label>`}
    <ul class="tools">
      ${tools.map(
        ({ name: each, tool, description }) => html`<li key=${each}>
          <label class="check"><input type="checkbox" data-tool=${each} checked=${chosen.has(each)} onChange=${({ target }) => choose([each], target.checked)} /><span><code>${tool}</code><span class="faint">${description}</span></span></label>
        </li>`,
      )}
    </ul>
    ${leftOut.length > 0 && html`<p class="note">Left out: ${leftOut.join("; ")}.</p>`}
  </fieldset>`;
}
