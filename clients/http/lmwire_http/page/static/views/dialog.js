// A modal dialog. The browser keeps the focus inside, and closes it with Escape.
import { html, useLayoutEffect, useRef } from "./html.js";
import { IconButton } from "./icons.js";

export function Dialog({ title, onClose, children, ...rest }) {
  const dialog = useRef(null);
  useLayoutEffect(() => dialog.current.showModal(), []);
  return html`<dialog ref=${dialog} aria-labelledby="dialog-title" onClose=${onClose} ...${rest}>
    <header class="dialog-head">
      <h2 id="dialog-title">${title}</h2>
      <${IconButton} icon="close" label="Close" onClick=${() => dialog.current.close()} />
    </header>
    ${children}
  </dialog>`;
}
