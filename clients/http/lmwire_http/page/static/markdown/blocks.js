// Block tokens of marked as DOM nodes.
import { codeBlock } from "./code_block.js";
import { element } from "./dom.js";
import { footnote } from "./footnotes.js";
import { renderInline } from "./inline.js";
import { formula } from "./math.js";

const FIRST_LEVEL = 3; // the page itself has headings of the levels 1 and 2
const LAST_LEVEL = 6;

/** Return the node of a block, or null if it shows nothing. The outline holds the level of the last heading. */
export function renderBlock(token, outline) {
  switch (token.type) {
    case "space":
    case "def":
      return null;
    case "heading":
      return heading(token, outline);
    case "paragraph":
      return element("p", {}, renderInline(token.tokens));
    case "code":
      return codeBlock(token.lang ?? "", token.text);
    case "blockquote":
      return element("blockquote", {}, renderBlocks(token.tokens, outline));
    case "list":
      return list(token, outline);
    case "table":
      return table(token);
    case "footnote":
      return footnote(token, renderInline(token.tokens));
    case "mathBlock":
      return element("p", {}, [formula(token)]);
    case "hr":
      return element("hr");
    case "text":
      return element("p", {}, renderInline(token.tokens ?? [token]));
    default:
      return element("p", {}, [token.raw.trim()]); // HTML, too, is shown as text
  }
}

export function renderBlocks(tokens, outline) {
  return tokens.map((token) => renderBlock(token, outline)).filter((node) => node !== null);
}

/** Return a heading at most one level below the last one, as screen readers expect it. */
function heading({ depth, tokens }, outline) {
  const level = Math.min(depth + FIRST_LEVEL - 1, (outline.level ?? FIRST_LEVEL - 1) + 1, LAST_LEVEL);
  outline.level = level;
  return element(`h${level}`, { class: `depth-${depth}` }, renderInline(tokens));
}

function list({ ordered, start, items }, outline) {
  const children = items.map((item) => listItem(item, outline));
  if (!ordered) return element("ul", items.some(({ task }) => task) ? { class: "tasks" } : {}, children);
  return element("ol", start === 1 || start === "" ? {} : { start }, children);
}

function listItem({ tokens, loose }, outline) {
  const nodes = tokens.flatMap((token) => {
    if (token.type === "checkbox" || (token.type === "text" && !loose)) return renderInline([token]);
    return renderBlocks([token], outline);
  });
  return element("li", {}, nodes);
}

function table({ header, rows }) {
  const head = element("thead", {}, [element("tr", {}, header.map((each) => cell("th", each)))]);
  const body = element("tbody", {}, rows.map((row) => element("tr", {}, row.map((each) => cell("td", each)))));
  const whole = element("table", {}, rows.length ? [head, body] : [head]);
  return element("div", { class: "table", tabindex: "0", role: "group", "aria-label": "Table" }, [whole]);
}

function cell(name, { tokens, align }) {
  return element(name, align ? { class: `align-${align}` } : {}, renderInline(tokens));
}
