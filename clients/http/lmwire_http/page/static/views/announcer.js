// Reports to screen readers what happens, and reads answers block by block as they become complete.
const MAX_CHARACTERS = 2000;
const MAX_LINES = 20;

export function announce(text) {
  const region = document.getElementById("announcements");
  if (!region) return;
  const line = document.createElement("p");
  line.textContent = text.slice(0, MAX_CHARACTERS);
  region.append(line); // only what is new is read
  if (region.childElementCount > MAX_LINES) region.firstElementChild.remove();
}
