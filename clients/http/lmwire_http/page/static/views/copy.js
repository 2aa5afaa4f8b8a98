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
