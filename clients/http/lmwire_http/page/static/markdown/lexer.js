// Marked's lexer with what answers have beyond GitHub's markdown.
import { Lexer, Marked } from "../vendor/marked.js";
import { footnoteDefinition, footnoteReference } from "./footnotes.js";
import { blockMath, inlineMath, maskMath } from "./math_syntax.js";

const EXTENSIONS = [inlineMath, blockMath, footnoteReference, footnoteDefinition];
const marked = new Marked({ extensions: EXTENSIONS, hooks: { emStrongMask: maskMath } });

/**
 * Return the block tokens of a text.
 * @param links Link definitions of earlier parts of the text, to which those of this part are added.
 * @param isGrowing Whether more of the text may come.
 */
export function lex(text, links, isGrowing) {
  const lexer = new Lexer(marked.defaults);
  lexer.tokens.links = links;
  lexer.isGrowing = isGrowing;
  return lexer.lex(text);
}
