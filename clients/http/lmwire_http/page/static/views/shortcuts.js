// Keys that work everywhere on the page.
export const IS_TOUCH = matchMedia("(pointer: coarse)").matches; // its keyboard has no Shift + Enter

export const SHORTCUTS = [
  ["Enter", "Send the message; during an answer, after it"],
  ["Shift + Enter", "New line"],
  ["Esc", "Stop the answer"],
  ["/", "Go to the message field"],
  ["Ctrl or ⌘ + Shift + O", "New chat"],
  ["Ctrl or ⌘ + K", "Search"],
];

export function startShortcuts({ answering, conversations }, { onSearch }) {
  const onKeyDown = (event) => {
    if (document.querySelector("dialog[open], :popover-open, [inert]")) return;
    const { key, target } = event;
    const isCommand = event.ctrlKey || event.metaKey;
    if (key === "Escape") answering.stop();
    else if (key.toLowerCase() === "o" && event.shiftKey && isCommand) conversations.open("");
    else if (key.toLowerCase() === "k" && isCommand && !event.shiftKey) onSearch();
    else if (key === "/" && !target.closest("input, textarea")) document.getElementById("composer").focus();
    else return;
    event.preventDefault();
  };
  addEventListener("keydown", onKeyDown);
  return () => removeEventListener("keydown", onKeyDown);
}
