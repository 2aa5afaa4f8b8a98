// What this browser keeps: it can be saved as a file, and deleted.
import { readConversations } from "../conversation/importing.js";
import { apiKey } from "../server/api_key.js";
import { html, useRef, useState } from "./html.js";

export function Storage({ state: { conversations } }) {
  const [isAsked, setAsked] = useState(false);
  const [note, setNote] = useState("");
  const input = useRef(null);
  const importFile = async ({ target }) => {
    const [file] = target.files;
    target.value = ""; // the same file can be chosen again
    try {
      const found = readConversations(await file.text());
      const count = await conversations.importAll(found);
      setNote(`${count} of ${found.length} conversations have been added${count < found.length ? "; the others were here already" : ""}.`);
    } catch (error) {
      setNote(error.message);
    }
  };
  const deleteAll = async () => {
    setAsked(false);
    await conversations.deleteAll();
  };
  return html`<fieldset>
    <legend>This browser</legend>
    <div class="buttons">
      ${conversations.current && html`<button type="button" onClick=${() => save(asMarkdown(conversations.path), "conversation.md")}>Export this conversation</button>`}
      <button type="button" onClick=${() => exportAll(conversations)}>Export conversations</button>
      <input type="file" accept=".json,application/json" hidden data-input="import" ref=${input} onChange=${importFile} />
      <button type="button" onClick=${() => input.current.click()}>Import conversations</button>
      ${isAsked
        ? html`<button type="button" class="danger" onClick=${deleteAll}>Really delete all</button>`
        : html`<button type="button" onClick=${() => setAsked(true)}>Delete all conversations</button>`}
      ${apiKey.value && html`<button type="button" onClick=${() => (apiKey.set(""), location.reload())}>Forget the API key</button>`}
    </div>
    <p class="note" role="status" data-note="import">${note}</p>
  </fieldset>`;
}

async function exportAll(conversations) {
  save(JSON.stringify(await conversations.exportAll(), null, 1), "lmwire-conversations.json");
}

function asMarkdown(path) {
  return path.map(({ role, model, name, content }) => `## ${name ?? model ?? role}\n\n${content}\n`).join("\n");
}

function save(content, name) {
  const address = URL.createObjectURL(new Blob([content]));
  const link = Object.assign(document.createElement("a"), { href: address, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 60_000); // the download has begun by then
}
