import type { ChatEvent, LmwireApi } from "../src/api.js";

declare global {
  interface Window {
    lmwire: LmwireApi;
  }
}

function find<T extends HTMLElement = HTMLElement>(id: string): T {
  return document.getElementById(id) as T;
}

const load = find<HTMLButtonElement>("load");
const send = find<HTMLButtonElement>("send");
const stop = find<HTMLButtonElement>("stop");
const progress = find<HTMLProgressElement>("progress");
const conversation = find("conversation");
let hasModel = false;
let answer: HTMLElement | undefined;

/** Enable the buttons that make sense while a load or an answer runs, or while none does. */
function setBusy(isBusy: boolean): void {
  load.disabled = isBusy;
  send.disabled = isBusy || !hasModel;
  stop.disabled = !isBusy;
  if (!isBusy) progress.hidden = true;
}

function setStatus(text: string): void {
  find("status").textContent = text;
}

/** Add a paragraph to the conversation. The text of a model or a user is never HTML. */
function addParagraph(role: "user" | "assistant", text: string): HTMLElement {
  const paragraph = document.createElement("p");
  paragraph.className = role;
  paragraph.textContent = text;
  conversation.append(paragraph);
  paragraph.scrollIntoView();
  return paragraph;
}

function showProgress({ stage, current, total, unit }: Extract<ChatEvent, { type: "progress" }>): void {
  progress.hidden = false;
  if (total === undefined) progress.removeAttribute("value");
  else Object.assign(progress, { max: Math.max(total, 1), value: current });
  setStatus(total === undefined ? `${stage} …` : `${stage}: ${current} of ${total} ${unit}`);
}

function show(event: ChatEvent): void {
  switch (event.type) {
    case "progress":
      showProgress(event);
      break;
    case "text":
      answer ??= addParagraph("assistant", "");
      answer.append(event.text);
      answer.scrollIntoView({ block: "end" });
      progress.hidden = true;
      setStatus("");
      break;
    case "loaded":
      hasModel = true;
      setStatus(`${event.model} is loaded.`);
      setBusy(false);
      break;
    case "ended":
      setStatus(event.reason === "cancelled" ? "Stopped." : "");
      setBusy(false);
      break;
    case "failed":
      setStatus(event.message);
      setBusy(false);
  }
}

find("load-form").addEventListener("submit", (event) => {
  event.preventDefault();
  hasModel = false;
  conversation.replaceChildren();
  setBusy(true);
  setStatus("Starting …");
  window.lmwire.load(find<HTMLInputElement>("model").value);
});

find("chat-form").addEventListener("submit", (event) => {
  event.preventDefault();
  if (send.disabled) return; // Enter submits, too
  const input = find<HTMLInputElement>("text");
  addParagraph("user", input.value);
  answer = undefined;
  setBusy(true);
  window.lmwire.chat(input.value);
  input.value = "";
});

stop.addEventListener("click", () => window.lmwire.stop());
window.lmwire.onEvent(show);
