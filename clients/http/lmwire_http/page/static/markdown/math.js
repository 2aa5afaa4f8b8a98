// Formulas as MathML, which browsers show themselves. Temml is loaded with the first formula.
import { element } from "./dom.js";

const MAX_NODES = 5000;
const MAX_DEPTH = 100;
const MAX_KEPT = 200;
const OPTIONS = { throwOnError: true, trust: false, maxExpand: 200, maxSize: [20, 200] };
const DEFINITION = /\\(?:[egx]?def|let|futurelet|global|long|(?:new|renew|provide)command)(?![A-Za-z])/; // may grow without end

let temml = null;
let loading = null;
const rendered = new Map();

/** Return an element with a formula. It shows the source until Temml is loaded, and also if this is no formula. */
export function formula({ raw, text, isDisplay }) {
  const source = raw.trim();
  const region = isDisplay ? { tabindex: "0", role: "group", "aria-label": "Formula" } : {};
  const shown = element("span", { class: isDisplay ? "math display" : "math", "data-source": source, ...region }, [source]);
  if (temml) show(shown, text, isDisplay);
  else load().then(() => show(shown, text, isDisplay)).catch(() => {}); // the server is away: the source remains
  return shown;
}

function load() {
  loading ??= import("../vendor/temml.js").then((module) => (temml = module.default));
  if (!document.querySelector("link[href='page/vendor/temml.css']")) {
    document.head.append(element("link", { rel: "stylesheet", href: "page/vendor/temml.css" }));
  }
  loading.catch(() => (loading = null)); // the next formula tries again
  return loading;
}

function show(shown, text, isDisplay) {
  const key = `${isDisplay}${text}`;
  if (!rendered.has(key)) rendered.set(key, render(text, isDisplay));
  if (rendered.size > MAX_KEPT) rendered.delete(rendered.keys().next().value);
  const node = rendered.get(key);
  if (node) shown.replaceChildren(node.cloneNode(true));
}

/** Return the MathML of a formula; null if it is none, or none of a reasonable size. */
function render(text, isDisplay) {
  if (DEFINITION.test(text)) return null;
  try {
    const tree = temml.__renderToMathMLTree(text, { ...OPTIONS, displayMode: isDisplay });
    return tidy(tree, { nodes: 0 }, 0) ? tree.toNode() : null;
  } catch {
    return null; // also a stack that is exhausted
  }
}

/** Take from a tree what the page does not allow. Returns whether it is small enough. */
function tidy(node, count, depth) {
  count.nodes += 1;
  if (count.nodes > MAX_NODES || depth > MAX_DEPTH) return false;
  const { attributes, children = [] } = node;
  if (attributes) {
    for (const name of ["id", "href", "src"]) delete attributes[name];
    for (const rule of attributes.style?.split(";") ?? []) {
      const [name, value] = rule.split(":");
      if (value) node.style[name.trim()] = value.trim(); // the policy refuses the attribute, and not the property
    }
    delete attributes.style;
  }
  return children.every((child) => tidy(child, count, depth + 1));
}
