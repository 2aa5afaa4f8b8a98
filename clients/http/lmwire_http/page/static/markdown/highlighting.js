// Colours in code. Highlight.js is loaded with the first block of a language that it may know.
import { element } from "./dom.js";

const MAX_CHARACTERS = 40_000;
const MAX_LINE = 300;
const MAX_PART = 4000; // the patterns of some languages take the square of the time that a length suggests
const PLAIN = /^(?:|text|txt|plain|plaintext|mermaid|output|console)$/i;
const NAMES = { shell: "bash" }; // it stands for scripts more often than for what a terminal shows

let loading = null;

/** Colour the text of a code element, once it is complete. What is long stays plain. */
export async function highlight(code, tag) {
  const text = code.textContent;
  const language = Object.hasOwn(NAMES, tag) ? NAMES[tag] : tag;
  if (PLAIN.test(language) || text.length > MAX_CHARACTERS) return;
  loading ??= import("../vendor/highlight.js").catch(() => (loading = null)); // the next block tries again
  const hljs = (await loading)?.default;
  if (!hljs?.getLanguage(language)) return;
  const nodes = [];
  for (const part of partsOf(text)) {
    nodes.push(...(isShort(part) ? hljs.highlight(part, { language, ignoreIllegals: true })._emitter.rootNode.children.map(coloured) : [part]));
    await new Promise((resolve) => setTimeout(resolve)); // the page goes on meanwhile
  }
  code.replaceChildren(...nodes);
}

/** Return a text in parts of whole lines, which end after a blank line where there is one. */
function partsOf(text) {
  const parts = [];
  for (let rest = text; rest; rest = rest.slice(parts.at(-1).length)) {
    const start = rest.slice(0, MAX_PART);
    const end = rest.length > MAX_PART ? start.lastIndexOf("\n\n") + 2 || start.lastIndexOf("\n") + 1 : 0;
    parts.push(end > 1 ? rest.slice(0, end) : start);
  }
  return parts;
}

function isShort(text) {
  return text.split("\n").every((line) => line.length <= MAX_LINE);
}

/** Return the node of a part: a text, or a scope such as `title.function` with the parts in it. */
function coloured(part) {
  if (typeof part === "string") return part;
  const kind = /^[a-z]+/i.exec(part.scope ?? "")?.[0] ?? "none";
  return element("span", { class: `code-${kind}` }, part.children.map(coloured));
}
