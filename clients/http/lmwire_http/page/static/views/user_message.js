// A message of the user, which can be edited.
import { html, useState } from "./html.js";
import { AttachmentList } from "./attachment_list.js";
import { CopyButton } from "./copy.js";
import { IconButton } from "./icons.js";
import { Versions } from "./versions.js";

export function UserMessage({ message, state }) {
  const [isEdited, setEdited] = useState(false);
  const { conversations, answering } = state;
  const isBusy = Boolean(answering.current);
  return html`<article class="message user" data-role="user">
    <h2 class="visually-hidden">You</h2>
    <${AttachmentList} attachments=${message.attachments} />
    ${isEdited
      ? html`<${Editor} message=${message} answering=${answering} onDone=${() => setEdited(false)} />`
      : html`${message.content && html`<div class="bubble">${message.content}</div>`}
          <footer class="actions">
            <${Versions} message=${message} conversations=${conversations} />
            <${CopyButton} label="Copy message" text=${message.content} />
            <${IconButton} icon="edit" label="Edit message" disabled=${isBusy} onClick=${() => setEdited(true)} />
          </footer>`}
  </article>`;
}

function Editor({ message, answering, onDone }) {
  const [text, setText] = useState(message.content);
  const send = () => {
    onDone();
    answering.edit(message, text);
  };
  const onKeyDown = (event) => {
    if (event.key === "Escape") onDone();
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    if (text.trim()) send();
  };
  return html`<div class="editor">
    <textarea
      aria-label="Edited message"
      rows="4"
      value=${text}
      ref=${(field) => field && field.dataset.focused !== "yes" && (field.focus(), (field.dataset.focused = "yes"))}
      onInput=${({ target }) => setText(target.value)}
      onKeyDown=${onKeyDown}
    />
    <div class="actions">
      <button type="button" class="quiet" onClick=${onDone}>Cancel</button>
      <button type="button" class="primary" disabled=${!text.trim()} onClick=${send}>Send</button>
    </div>
  </div>`;
}
