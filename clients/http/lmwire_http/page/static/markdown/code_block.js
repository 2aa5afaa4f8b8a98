// A block of code with its language and a button that copies it.
import { element } from "./dom.js";

export function codeBlock(info, text) {
  const language = info.trim().split(/\s/)[0].slice(0, 30);
  const copy = element("button", { type: "button", class: "quiet", "data-copy": "code" }, ["Copy"]);
  const caption = element("figcaption", {}, [element("span", {}, [language || "text"]), copy]);
  const code = element("code", {}, [text]);
  const name = language ? `Code in ${language}` : "Code";
  return element("figure", { class: "code-block" }, [
    caption,
    element("pre", { tabindex: "0", role: "group", "aria-label": name }, [code]),
  ]);
}
