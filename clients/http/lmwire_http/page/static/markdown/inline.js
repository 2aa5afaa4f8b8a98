// Inline tokens of marked as DOM nodes.
import { element } from "./dom.js";
import { decodeEntities } from "./entities.js";
import { reference } from "./footnotes.js";
import { image, link } from "./links.js";
import { formula } from "./math.js";

const LINE_BREAK = /^<br\s*\/?>$/i;
const WRAPPERS = { strong: "strong", em: "em", del: "del" };

export function renderInline(tokens) {
  return tokens.map(renderToken);
}

function renderToken(token) {
  if (token.type in WRAPPERS) return element(WRAPPERS[token.type], {}, renderInline(token.tokens));
  switch (token.type) {
    case "codespan":
      return element("code", {}, [token.text]);
    case "footnoteReference":
      return reference(token);
    case "math":
      return formula(token);
    case "br":
      return element("br");
    case "link":
      return link(token.href, renderInline(token.tokens));
    case "image":
      return image(token.href, token.text);
    case "html":
      return LINE_BREAK.test(token.raw.trim()) ? element("br") : token.raw;
    case "escape":
      return token.text;
    case "checkbox":
      return token.checked ? "☑ " : "☐ ";
    case "text":
      return token.tokens ? fragment(renderInline(token.tokens)) : decodeEntities(token.raw);
    default:
      return token.raw;
  }
}

function fragment(nodes) {
  const created = document.createDocumentFragment();
  created.append(...nodes);
  return created;
}
