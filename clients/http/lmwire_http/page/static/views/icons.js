// Icons of 20 by 20, as paths. They are decoration: the buttons have names of their own.
import { html } from "./html.js";

const PATHS = {
  menu: "M3 5h14M3 10h14M3 15h14",
  plus: "M10 4v12M4 10h12",
  send: "M10 16V4M5 9l5-5 5 5",
  search: "M9 3.5a5.5 5.5 0 1 0 0 11a5.5 5.5 0 0 0 0-11M13 13l4 4",
  stop: "M6 6h8v8H6z",
  settings: "M4 6h7m4 0h1M4 14h1m4 0h7M13 4v4M7 12v4",
  sun: "M10 6.5a3.5 3.5 0 1 0 0 7 3.5 3.5 0 0 0 0-7M10 2v1.5M10 16.5V18M2 10h1.5M16.5 10H18M4.3 4.3l1 1M14.7 14.7l1 1M15.7 4.3l-1 1M5.3 14.7l-1 1",
  check: "M4 10.5l4 4 8-9",
  copy: "M7 7h9v9H7zM4 13V4h9",
  again: "M15.5 8A6 6 0 1 0 16 11M16 4v4h-4",
  columns: "M3 4h14v12H3zM10 4v12",
  edit: "M4 16l1-4 8-8 3 3-8 8z",
  trash: "M4 6h12M8 6V4h4v2M6 6l1 10h6l1-10",
  left: "M12 5l-5 5 5 5",
  right: "M8 5l5 5-5 5",
  down: "M10 4v12M5 11l5 5 5-5",
  clip: "M14 7l-5.5 5.5a1.5 1.5 0 0 0 2 2L16 9a3 3 0 0 0-4.5-4.5L5.5 10.500a5 5 0 0 0 7 7",
  tools: "M12 4a4 4 0 0 0-3.6 5.600L4 14l2 2l4.400-4.400A4 4 0 0 0 16 8l-2.500 2.500l-2-.500l-.500-2L13.500 5.500A4 4 0 0 0 12 4",
  close: "M5 5l10 10M15 5L5 15",
  chevron: "M6 8l4 4 4-4",
};

export function Icon({ name }) {
  return html`<svg class="icon" viewBox="0 0 20 20" aria-hidden="true"><path d=${PATHS[name]} /></svg>`;
}

/** A button with an icon. The label is its name and its tooltip. */
export function IconButton({ icon, label, children, ...rest }) {
  return html`<button type="button" class="icon-button" aria-label=${label} title=${label} ...${rest}>
    <${Icon} name=${icon} />${children}
  </button>`;
}
