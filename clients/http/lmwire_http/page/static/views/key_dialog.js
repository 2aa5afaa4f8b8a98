// Asks for the API key when the server wants one.
import { html, useChanges, useState } from "./html.js";
import { Dialog } from "./dialog.js";

export function KeyDialog({ connection }) {
  useChanges(connection);
  return connection.state === "locked" && html`<${Form} connection=${connection} />`;
}

function Form({ connection }) {
  const [key, setKey] = useState("");
  const [isRemembered, setRemembered] = useState(false);
  const unlock = (event) => {
    event.preventDefault();
    if (key.trim()) connection.unlock(key.trim(), isRemembered);
  };
  return html`<${Dialog} title="This server needs an API key" class="narrow" onClose=${() => connection.dismiss()}>
    <form onSubmit=${unlock}>
      <label>API key<input type="password" autocomplete="off" autofocus data-input="key" aria-describedby=${connection.hasWrongKey ? "key-problem" : undefined} value=${key} onInput=${({ target }) => setKey(target.value)} /></label>
      ${connection.hasWrongKey && html`<p class="problem" id="key-problem" role="alert">The server refuses this key. The right one is that of its option --api-key.</p>`}
      <label class="check"><input type="checkbox" checked=${isRemembered} onChange=${({ target }) => setRemembered(target.checked)} />Remember it in this browser</label>
      <p class="faint">Otherwise the key is forgotten when this tab is closed.</p>
      <div class="dialog-actions"><button type="submit" class="primary">Continue</button></div>
    </form>
  <//>`;
}
