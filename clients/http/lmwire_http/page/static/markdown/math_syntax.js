// Where mathematics begins and ends in markdown: extensions of marked, which come before its escapes and after its code.
const MAX_CHARACTERS = 4000; // a longer formula stays text
const INNER = `(?:\\\\[^]|[^\\\\$\`]){1,${MAX_CHARACTERS}}?`;
const INNER_BRACKETS = `(?:(?!\\n[ \\t]*\\n)[^]){1,${MAX_CHARACTERS}}?`;
const ENDING = "(?=(?:st|nd|rd|th|s|D)\\b)|(?![\\dA-Za-z$])"; // the n-th, several x's: a price or a variable of a shell is neither

const INLINE = [
  [new RegExp(`^\\$\\$(${INNER})\\$\\$`), true],
  [new RegExp(`^\\$(?![\\s$])(${INNER})(?<!\\s)\\$(?:${ENDING})`), false],
  [new RegExp(`^\\\\\\((${INNER_BRACKETS})\\\\\\)`), false],
  [new RegExp(`^\\\\\\[(${INNER_BRACKETS})\\\\\\]`), true],
];
const BLOCK = new RegExp(`^ {0,3}(?:\\$\\$(${INNER})\\$\\$|\\\\\\[(${INNER_BRACKETS})\\\\\\])[ \\t]*(?:\\n+|$)`);
const OPEN_BLOCK = /^ {0,3}(?:\$\$(?![^\n]*\$\$)|\\\[(?![^\n]*\\\]))/;
const INLINE_START = /(?<![\\$\w])\$|(?<!\\)\\[([]/;
const BLOCK_START = /\n {0,3}(?:\$\$|\\\[)/;
const BLANK_LINE = /\n[ \t]*\n/;
const PRICE = /^\d[^\\^_={}]*[A-Za-z]{2}[^\\^_={}]*$/; // "$5 a month, or 50$" is a number among words

/** A formula in a line: { type: "math", raw, text, isDisplay }. */
export const inlineMath = {
  name: "math",
  level: "inline",
  start: (text) => indexOf(INLINE_START, text),
  tokenizer: formulaAt,
};

/** A formula on lines of its own. While the text grows, one that is not closed yet keeps what follows together. */
export const blockMath = {
  name: "mathBlock",
  level: "block",
  start: (text) => indexOf(BLOCK_START, text, 1),
  tokenizer(text) {
    const found = BLOCK.exec(text);
    const source = found?.[1] ?? found?.[2];
    if (found && !BLANK_LINE.test(source)) return { type: "mathBlock", raw: found[0], text: source, isDisplay: true };
    const isOpen = this.lexer.isGrowing && text.length < MAX_CHARACTERS && OPEN_BLOCK.test(text) && !BLANK_LINE.test(text);
    return isOpen ? { type: "openMath", raw: text } : undefined;
  },
};

/** Return a line in which nothing within a formula can begin or end emphasis. */
export function maskMath(line) {
  let masked = "";
  for (let rest = line; rest; ) {
    const start = rest.search(INLINE_START);
    if (start < 0) return masked + rest;
    const raw = formulaAt(rest.slice(start))?.raw ?? rest[start];
    masked += rest.slice(0, start) + raw.replace(/[*_~]/g, "+");
    rest = rest.slice(start + raw.length);
  }
  return masked;
}

/** Return the token of the formula that a text begins with; undefined if it begins with none. */
function formulaAt(text) {
  for (const [pattern, isDisplay] of INLINE) {
    const [raw, source] = pattern.exec(text) ?? [];
    const isPrice = text[0] === "$" && !isDisplay && PRICE.test(source);
    if (raw && !isPrice) return { type: "math", raw, text: source, isDisplay };
  }
  return undefined;
}

/** Return where a pattern is found, by marked's convention: undefined if nowhere. */
function indexOf(pattern, text, beyond = 0) {
  const index = text.search(pattern);
  return index < 0 ? undefined : index + beyond;
}
