// Shows markdown that grows. Blocks that are complete are rendered once; only the last one is rendered again.
import { renderBlock } from "./blocks.js";
import { highlightBlocks } from "./code_block.js";
import { spoken } from "./dom.js";
import { linkFootnotes } from "./footnotes.js";
import { lex } from "./lexer.js";

const FENCE = /^ {0,3}(`{3,}|~{3,})[^\n]*\n/;
const ENOUGH_CHARACTERS = 24; // after so much of the next block, it cannot turn out to be a part of the last one

export class MarkdownStream {
  #element;
  #onBlock;
  #text = "";
  #committed = 0;
  #last = null;
  #outline = {};
  #fence = null;
  #links = Object.create(null);

  /**
   * @param element The element that the blocks are added to.
   * @param onBlock Called with the text of each complete block.
   */
  constructor(element, onBlock = () => {}) {
    this.#element = element;
    this.#onBlock = onBlock;
  }

  /** Show a text. If it does not continue the last one, everything is rendered again. */
  update(text, isComplete) {
    const clean = text.replaceAll("\r", "");
    if (!clean.startsWith(this.#text)) this.#clear();
    this.#text = clean;
    if (!isComplete && this.#extendFence()) return;
    this.#renderTail(isComplete);
  }

  #renderTail(isComplete) {
    this.#last?.remove();
    this.#last = this.#fence = null;
    const tokens = lex(this.#text.slice(this.#committed), this.#links, !isComplete);
    const count = isComplete ? tokens.length : completeCount(tokens);
    for (const token of tokens.slice(0, count)) this.#commit(token);
    const rest = tokens.slice(count);
    if (rest.length) this.#showLast(rest);
    if (isComplete) linkFootnotes(this.#element);
  }

  #commit(token) {
    this.#committed += token.raw.length;
    const node = renderBlock(token, this.#outline);
    if (!node) return;
    this.#element.append(node);
    highlightBlocks(node);
    this.#onBlock(spoken(node));
  }

  /** Show the blocks that may still change, in one element. */
  #showLast(tokens) {
    this.#last = document.createElement("div");
    this.#last.className = "unfinished";
    for (const token of tokens) this.#last.append(renderBlock(token, { ...this.#outline }) ?? "");
    this.#element.append(this.#last);
    this.#fence = this.#openFence(tokens);
  }

  /** Return the code block that is open, to add to it without rendering it again. */
  #openFence(tokens) {
    const [token] = tokens;
    const found = tokens.length === 1 && token.type === "code" ? FENCE.exec(token.raw) : null;
    if (!found || closingFence(found[1]).test(token.raw.slice(found[0].length))) return null;
    const node = this.#last.querySelector("code").firstChild;
    node.data = token.raw.slice(found[0].length); // with the line break that may end it
    return { node, closing: closingFence(found[1]), shown: this.#committed + token.raw.length };
  }

  /** Add what is new to the open code block. Returns false if the block has to be rendered again. */
  #extendFence() {
    const fence = this.#fence;
    if (!fence) return false;
    const added = this.#text.slice(fence.shown);
    const lineStart = this.#text.lastIndexOf("\n", fence.shown - 1) + 1;
    if (fence.closing.test(this.#text.slice(lineStart))) return false;
    fence.node.appendData(added);
    fence.shown = this.#text.length;
    return true;
  }

  #clear() {
    this.#element.replaceChildren();
    this.#text = "";
    this.#committed = 0;
    this.#last = this.#fence = null;
    this.#outline = {};
  }
}

/** Return how many of the blocks cannot change any more: those before the last one. */
function completeCount(tokens) {
  const last = tokens.findLastIndex(({ type }) => type !== "space");
  if (last < 1) return 0;
  const { raw } = tokens[last];
  return raw.includes("\n") || raw.length > ENOUGH_CHARACTERS ? last : 0;
}

function closingFence(opening) {
  return new RegExp(`^ {0,3}[${opening[0]}]{${opening.length},}[ \\t]*$`, "m");
}
