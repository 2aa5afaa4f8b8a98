// @ts-check
// The chat. Tauri's configuration puts its API at window.__TAURI__.

/**
 * @typedef {{ type: "progress", stage: string, current: number, total: number | null, unit: string }
 *   | { type: "loaded", model: string } | { type: "text", text: string } | { type: "ended" } | { type: "stopped" }
 *   | { type: "failed", message: string }} ChatEvent
 */

// @ts-expect-error: it has no types without a build step
const { Channel, invoke } = window.__TAURI__.core;

const find = (/** @type {string} */ id) => /** @type {HTMLElement} */ (document.getElementById(id));
const input = (/** @type {string} */ id) => /** @type {HTMLInputElement} */ (find(id));
const [load, send, stop] = ["load", "send", "stop"].map((id) => /** @type {HTMLButtonElement} */ (find(id)));
const progress = /** @type {HTMLProgressElement} */ (find("progress"));
let hasModel = false;
/** @type {HTMLElement | undefined} */
let answer;

/** Enable the buttons that make sense while a load or an answer runs, or while none does. */
function setBusy(/** @type {boolean} */ isBusy) {
  load.disabled = isBusy;
  send.disabled = isBusy || !hasModel;
  stop.disabled = !isBusy;
  if (!isBusy) progress.hidden = true;
}

function setStatus(/** @type {string} */ text) {
  find("status").textContent = text;
}

/** Add a paragraph to the conversation. The text of a model or a user is never HTML. */
function addParagraph(/** @type {string} */ role, /** @type {string} */ text) {
  const paragraph = document.createElement("p");
  paragraph.className = role;
  paragraph.textContent = text;
  find("conversation").append(paragraph);
  paragraph.scrollIntoView();
  return paragraph;
}

/** Show how far a load has come. */
function showProgress(/** @type {Extract<ChatEvent, { type: "progress" }>} */ { stage, current, total, unit }) {
  progress.hidden = false;
  if (total === null) progress.removeAttribute("value");
  else Object.assign(progress, { max: Math.max(total, 1), value: current });
  setStatus(total === null ? `${stage} …` : `${stage}: ${current} of ${total} ${unit}`);
}

function addText(/** @type {string} */ text) {
  answer ??= addParagraph("assistant", "");
  answer.append(text);
  answer.scrollIntoView({ block: "end" });
  progress.hidden = true;
  setStatus("");
}

function finish(/** @type {string} */ status) {
  setStatus(status);
  setBusy(false);
}

function show(/** @type {ChatEvent} */ event) {
  if (event.type === "progress") showProgress(event);
  else if (event.type === "text") addText(event.text);
  else if (event.type === "loaded") {
    hasModel = true;
    finish(`${event.model} is loaded.`);
  } else finish({ ended: "", stopped: "Stopped.", failed: "message" in event ? event.message : "" }[event.type]);
}

/** Call a command of the app, and show the events of its channel. */
function run(/** @type {string} */ command, /** @type {object} */ fields) {
  setBusy(true);
  const onEvent = new Channel();
  onEvent.onmessage = show;
  invoke(command, { ...fields, onEvent }).catch((/** @type {unknown} */ error) => finish(String(error)));
}

find("load-form").addEventListener("submit", (event) => {
  event.preventDefault();
  hasModel = false;
  find("conversation").replaceChildren();
  setStatus("Starting …");
  run("load", { model: input("model").value });
});

find("chat-form").addEventListener("submit", (event) => {
  event.preventDefault();
  if (send.disabled) return; // Enter submits, too
  const text = input("text").value;
  addParagraph("user", text);
  answer = undefined;
  input("text").value = "";
  run("chat", { text });
});

stop.addEventListener("click", () => invoke("stop"));
