// The list of conversations.
import { html, useChanges, useState } from "./html.js";
import { Icon, IconButton } from "./icons.js";

export function Sidebar({ state: { conversations }, onOpened, onClose }) {
  useChanges(conversations);
  const [wanted, setWanted] = useState("");
  const found = conversations.list.filter(({ title }) => title.toLowerCase().includes(wanted.toLowerCase()));
  const open = (id) => conversations.open(id).then(onOpened);
  return html`<nav class="sidebar" aria-label="Conversations">
      <div class="sidebar-head">
        <span class="brand"><img src="page/icon.svg" alt="" width="24" height="24" />lmwire</span>
        <${IconButton} icon="close" label="Hide conversations" class="icon-button only-phone" onClick=${onClose} />
      </div>
      <button type="button" class="new-chat" data-action="new" onClick=${() => open("")}>
        <${Icon} name="plus" />New chat
      </button>
      ${conversations.list.length > 5 &&
      html`<input
        type="search"
        placeholder="Search"
        aria-label="Search conversations"
        value=${wanted}
        onInput=${({ target }) => setWanted(target.value)}
      />`}
      <ul class="conversation-list">
        ${found.map((each) => html`<${Entry} key=${each.id} conversation=${each} conversations=${conversations} open=${open} />`)}
      </ul>
      ${!found.length && html`<p class="faint">${wanted ? "Nothing found." : "Your conversations stay in this browser."}</p>`}
    </nav>
    <div class="backdrop only-phone" onClick=${onClose} />`;
}

function Entry({ conversation, conversations, open }) {
  const [mode, setMode] = useState("");
  const { id, title } = conversation;
  if (mode === "rename") return html`<${Rename} title=${title} onDone=${rename} />`;
  function rename(text) {
    setMode("");
    if (text.trim()) conversations.update(id, { title: text.trim() });
  }
  return html`<li class="conversation">
    <a
      href="#${id}"
      aria-current=${conversations.current?.id === id ? "page" : undefined}
      onClick=${(event) => {
        event.preventDefault();
        open(id);
      }}
      >${title}</a
    >
    ${mode === "delete"
      ? html`<button type="button" class="danger" data-action="delete-really" onClick=${() => conversations.delete(id)}>Delete</button>
          <button type="button" class="quiet" onClick=${() => setMode("")}>Keep</button>`
      : html`<${IconButton} icon="edit" label="Rename ${title}" onClick=${() => setMode("rename")} />
          <${IconButton} icon="trash" label="Delete ${title}" onClick=${() => setMode("delete")} />`}
  </li>`;
}

function Rename({ title, onDone }) {
  const [text, setText] = useState(title);
  return html`<li class="conversation">
    <input
      aria-label="Title of the conversation"
      value=${text}
      ref=${(input) => input && document.activeElement !== input && input.focus()}
      onInput=${({ target }) => setText(target.value)}
      onKeyDown=${({ key }) => (key === "Enter" ? onDone(text) : key === "Escape" && onDone(""))}
      onBlur=${() => onDone(text)}
    />
  </li>`;
}
