// Creates elements, and reads them out. Attributes are set one by one: no text is ever parsed as HTML.
export function element(name, attributes = {}, children = []) {
  const created = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) created.setAttribute(key, value);
  created.append(...children);
  return created;
}

const APART = /^(?:FIGURE|DIV|TABLE|T(?:HEAD|BODY|R)|[OU]L|LI|BLOCKQUOTE)$/;

/**
 * Return the text of a block for the ear: cells and items are apart, formulas are their
 * sources, and buttons are left out.
 */
export function spoken(node) {
  if (node.tagName === "BUTTON") return "";
  return node.dataset?.source ?? node.data ?? [...node.childNodes].map(spoken).join(APART.test(node.tagName) ? " " : "");
}
