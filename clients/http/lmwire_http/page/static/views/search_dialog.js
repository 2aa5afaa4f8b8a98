// The search in all conversations: their titles and messages.
import { html, useLayoutEffect, useRef, useState } from "./html.js";
import { Dialog } from "./dialog.js";

const WAIT_MS = 120;

export function SearchDialog({ conversations, onClose }) {
  const [wanted, setWanted] = useState("");
  const [results, setResults] = useState(null);
  const list = useRef(null);
  useLayoutEffect(() => {
    let isOver = false;
    const timer = setTimeout(async () => {
      const found = await conversations.search(wanted.trim());
      if (!isOver) setResults(found);
    }, WAIT_MS);
    return () => {
      isOver = true;
      clearTimeout(timer);
    };
  }, [wanted]);
  const open = (id) => {
    conversations.open(id);
    onClose();
  };
  const onKeyDown = (event) => {
    const links = [...list.current.querySelectorAll("a")];
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      event.preventDefault();
      links[Math.max(0, links.indexOf(document.activeElement) + step)]?.focus();
    } else if (event.key === "Enter" && event.target.tagName === "INPUT") links[0]?.click();
  };
  return html`<${Dialog} title="Search" class="search" onClose=${onClose} onKeyDown=${onKeyDown}>
    <input type="search" autofocus aria-label="Search conversations" placeholder="Title or words of a message" data-input="search" value=${wanted} onInput=${({ target }) => setWanted(target.value)} />
    <ul class="results" ref=${list}>
      ${results?.map((each) => html`<${Result} key=${each.id} result=${each} open=${open} />`)}
    </ul>
    <p class="faint" role="status">${results && (results.length ? "" : "Nothing found.")}</p>
  <//>`;
}

function Result({ result: { id, title, updated, part }, open }) {
  const follow = (event) => {
    event.preventDefault();
    open(id);
  };
  return html`<li><a href="#${id}" onClick=${follow}>
    <span class="result-title">${title}</span> <span class="faint">${new Date(updated).toLocaleDateString()}</span>
    ${part && html`<span class="result-part">${part.before}<mark>${part.found}</mark>${part.after}</span>`}
  </a></li>`;
}
