// Buttons that copy. One listener serves those of code, since rendered markdown has none of its own.
import { announce } from "./announcer.js";
import { html, useState } from "./html.js";
import { IconButton } from "./icons.js";

const SHOWN_MS = 1500;

/** A button that copies a text, and shows that it has. */
export function CopyButton({ text, label }) {
  const [isCopied, setCopied] = useState(false);
  const copy = async () => {
    await copyText(text);
    setCopied(true);
    setTimeout(() => setCopied(false), SHOWN_MS);
  };
  return html`<${IconButton} icon=${isCopied ? "check" : "copy"} label=${isCopied ? "Copied" : label} onClick=${copy} />`;
}

export function startCopyButtons(root) {
  root.addEventListener("click", async ({ target }) => {
    const button = target.closest?.("[data-copy=code]");
    if (!button) return;
    await copyText(button.closest("figure").querySelector("code").textContent);
    button.textContent = "Copied";
    setTimeout(() => (button.textContent = "Copy"), SHOWN_MS);
  });
}

/** Let a selection that has formulas be copied with their sources: MathML has no text of its own. */
export function startCopyingFormulas(root) {
  root.addEventListener("copy", (event) => {
    const selection = getSelection();
    if (selection.isCollapsed || event.target.closest?.("input, textarea")) return;
    const range = selection.getRangeAt(0).cloneRange();
    const [first, last] = [range.startContainer, range.endContainer].map((node) => (node.closest ? node : node.parentElement).closest(".math"));
    if (first) range.setStartBefore(first);
    if (last) range.setEndAfter(last);
    const copied = document.createElement("div");
    copied.className = "copied";
    copied.append(range.cloneContents());
    const formulas = copied.querySelectorAll(".math");
    if (!formulas.length) return;
    for (const formula of formulas) formula.replaceWith(formula.dataset.source);
    document.body.append(copied); // only what is laid out has lines
    event.clipboardData.setData("text/plain", copied.innerText);
    copied.remove();
    event.preventDefault();
  });
}

async function copyText(text) {
  announce("Copied");
  if (navigator.clipboard) {
    await navigator.clipboard.writeText(text);
    return;
  }
  const { activeElement } = document;
  const field = document.createElement("textarea"); // pages over plain http have no clipboard
  field.value = text;
  document.body.append(field);
  field.select();
  document.execCommand("copy");
  field.remove();
  activeElement.focus();
}
