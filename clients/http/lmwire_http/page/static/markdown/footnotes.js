// Footnotes: a definition stands where the text has it, and the references to it become links once it is there.
import { element } from "./dom.js";

const REFERENCE = /^\[\^([^\s\]]{1,40})\]/;
const DEFINITION = /^ {0,3}\[\^([^\s\]]{1,40})\]:[ \t]+([^\n]*(?:\n(?:[ \t]+\S[^\n]*|(?!\[\^|[ \t]*\n|$)[^\n]+))*)(?:\n+|$)/;

/** A reference such as `[^1]`: { type: "footnoteReference", raw, label }. */
export const footnoteReference = {
  name: "footnoteReference",
  level: "inline",
  start(text) {
    const index = text.indexOf("[^");
    return index < 0 ? undefined : index;
  },
  tokenizer(text) {
    const found = REFERENCE.exec(text);
    return found ? { type: "footnoteReference", raw: found[0], label: found[1] } : undefined;
  },
};

/** A definition such as `[^1]: text`. Lines that are indented belong to it. */
export const footnoteDefinition = {
  name: "footnote",
  level: "block",
  start(text) {
    const index = text.search(/\n {0,3}\[\^[^\s\]]{1,40}\]:/);
    return index < 0 ? undefined : index + 1;
  },
  tokenizer(text) {
    const found = DEFINITION.exec(text);
    if (!found) return undefined;
    const tokens = this.lexer.inlineTokens(found[2].replace(/\n[ \t]+/g, "\n").trim());
    return { type: "footnote", raw: found[0], label: found[1], tokens };
  },
};

export function reference({ raw, label }) {
  return element("span", { "data-footnote": label }, [raw]);
}

export function footnote({ label }, children) {
  const back = element("button", { type: "button", class: "quiet", "data-footnote-of": label, "aria-label": `Back to the text of note ${label}` }, ["↩"]);
  return element("div", { class: "footnote", "data-note": label, role: "note", tabindex: "-1" }, [element("sup", {}, [label]), " ", ...children, " ", back]);
}

/** Make buttons of the references whose definitions are there. */
export function linkFootnotes(root) {
  const notes = new Set([...root.querySelectorAll("[data-note]")].map(({ dataset }) => dataset.note));
  if (!notes.size) return;
  for (const reference of root.querySelectorAll("[data-footnote]")) {
    const { footnote: label } = reference.dataset;
    if (!notes.has(label)) continue; // it stays text, such as a class of characters
    const button = element("button", { type: "button", "data-footnote-to": label, "aria-label": `Note ${label}` }, [label]);
    reference.replaceWith(element("sup", {}, [button]));
  }
}

/** Let references lead to their notes, and notes back. A link would change the address, which has the conversation. */
export function startFootnotes(root) {
  root.addEventListener("click", ({ target }) => {
    const { footnoteTo, footnoteOf } = target.dataset ?? {};
    const wanted = footnoteTo ?? footnoteOf;
    if (wanted === undefined) return;
    const name = footnoteTo === undefined ? "[data-footnote-to" : "[data-note";
    const found = target.closest(".markdown").querySelector(`${name}="${CSS.escape(wanted)}"]`);
    found?.focus();
    found?.scrollIntoView({ block: "nearest" });
  });
}
