// The list of conversations.
import { periodOf } from "../conversation/search.js";
import { html, useChanges, useLayoutEffect, useRef, useState } from "./html.js";
import { Icon, IconButton } from "./icons.js";

export function Sidebar({ state: { conversations }, isOverlay, onOpened, onSearch, onClose }) {
  useChanges(conversations);
  const open = (id) => conversations.open(id).then(onOpened);
  return html`<nav class="sidebar" aria-label="Conversations" onKeyDown=${({ key }) => key === "Escape" && isOverlay && onClose()}>
      <div class="sidebar-head">
        <span class="brand"><img src="page/icon.svg" alt="" width="24" height="24" />lmwire</span>
        <${IconButton} icon="close" label="Hide conversations" class="icon-button only-phone" onClick=${onClose} />
      </div>
      <button type="button" class="new-chat" data-action="new" onClick=${() => open("")}>
        <${Icon} name="plus" />New chat
      </button>
      <button type="button" class="new-chat" data-action="search" title="Ctrl or ⌘ + K" onClick=${onSearch}><${Icon} name="search" />Search</button>
      <ul class="conversation-list">
        ${conversations.list.map((each, index, { [index - 1]: last }) => {
          const period = periodOf(each.updated);
          return html`${period !== (last && periodOf(last.updated)) && html`<li class="period" key=${period}>${period}</li>`}
            <${Entry} key=${each.id} conversation=${each} conversations=${conversations} open=${open} />`;
        })}
      </ul>
    </nav>
    <div class="backdrop only-phone" onClick=${onClose} />`;
}

function Entry({ conversation, conversations, open }) {
  const [mode, setMode] = useState("");
  const item = useRef(null);
  const focused = useRef(mode);
  const { id, title } = conversation;
  useLayoutEffect(() => {
    if (mode === focused.current) return;
    focused.current = mode;
    if (mode || document.activeElement === document.body) item.current.querySelector(mode ? "input, .quiet" : "a").focus();
  }, [mode]);
  const rename = (text) => {
    setMode("");
    if (text.trim()) conversations.update(id, { title: text.trim() });
  };
  const remove = () => {
    conversations.delete(id);
    document.querySelector(".new-chat").focus();
  };
  const follow = (event) => {
    event.preventDefault();
    open(id);
  };
  const link = html`<a href="#${id}" title=${title} aria-current=${conversations.current?.id === id ? "page" : undefined} onClick=${follow}>${title}</a>`;
  return html`<li class="conversation" ref=${item}>
    ${mode === "rename"
      ? html`<${Rename} title=${title} onDone=${rename} />`
      : mode === "delete"
        ? html`${link}<button type="button" class="danger" data-action="delete-really" onClick=${remove}>Delete</button>
            <button type="button" class="quiet" onClick=${() => setMode("")}>Keep</button>`
        : html`${link}<span class="entry-actions"><${IconButton} icon="edit" label="Rename ${title}" onClick=${() => setMode("rename")} />
            <${IconButton} icon="trash" label="Delete ${title}" onClick=${() => setMode("delete")} /></span>`}
  </li>`;
}

function Rename({ title, onDone }) {
  const [text, setText] = useState(title);
  const isDone = useRef(false);
  const finish = (given) => {
    if (!isDone.current) onDone(given);
    isDone.current = true; // the field loses the focus once more when it goes
  };
  const onKeyDown = (event) => {
    if (event.key === "Escape") event.stopPropagation(); // it ends the edit alone
    if (event.key === "Enter" || event.key === "Escape") finish(event.key === "Enter" ? text : "");
  };
  return html`<input
    aria-label="Title of the conversation"
    value=${text}
    onInput=${({ target }) => setText(target.value)}
    onKeyDown=${onKeyDown}
    onBlur=${() => finish(text)}
  />`;
}
