// Small settings of this browser. Without storage they last as long as the page.
const PREFIX = "lmwire.";
const memory = new Map();

export function getPreference(name, fallback) {
  try {
    const text = localStorage.getItem(PREFIX + name) ?? memory.get(name);
    return text == null ? fallback : JSON.parse(text);
  } catch {
    return fallback;
  }
}

export function setPreference(name, value) {
  const text = JSON.stringify(value);
  memory.set(name, text);
  try {
    localStorage.setItem(PREFIX + name, text);
  } catch {} // the value in memory remains
}
