// A block of code with its language and a button that copies it.
import { element } from "./dom.js";
import { highlight } from "./highlighting.js";

export function codeBlock(info, text) {
  const language = info.trim().split(/\s/)[0].slice(0, 30);
  const copy = element("button", { type: "button", class: "quiet", "data-copy": "code" }, ["Copy"]);
  const caption = element("figcaption", {}, [element("span", {}, [language || "text"]), copy]);
  const code = element("code", {}, [text]);
  const name = language ? `Code in ${language}` : "Code";
  return element("figure", { class: "code-block", "data-language": language }, [
    caption,
    element("pre", { tabindex: "0", role: "group", "aria-label": name }, [code]),
  ]);
}

/** Colour the blocks of code in a complete part of an answer. */
export function highlightBlocks(node) {
  for (const block of node.matches(".code-block") ? [node] : node.querySelectorAll(".code-block")) {
    highlight(block.querySelector("code"), block.dataset.language);
  }
}
