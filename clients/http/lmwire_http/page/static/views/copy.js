// Buttons that copy code. One listener serves all of them, since rendered markdown has none of its own.
const SHOWN_MS = 1500;

export function startCopyButtons(root) {
  root.addEventListener("click", async ({ target }) => {
    const button = target.closest?.("[data-copy=code]");
    if (!button) return;
    await copyText(button.closest("figure").querySelector("code").textContent);
    button.textContent = "Copied";
    setTimeout(() => (button.textContent = "Copy"), SHOWN_MS);
  });
}

export async function copyText(text) {
  if (navigator.clipboard) {
    await navigator.clipboard.writeText(text);
    return;
  }
  const field = document.createElement("textarea"); // pages over plain http have no clipboard
  field.value = text;
  document.body.append(field);
  field.select();
  document.execCommand("copy");
  field.remove();
}
