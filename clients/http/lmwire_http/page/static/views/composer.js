// The field for the next message.
import { contextUse } from "../conversation/figures.js";
import { getSettings, namesInUse } from "../conversation/settings.js";
import { NEW_CHAT } from "../notices.js";
import { NO_MODEL } from "../server/models.js";
import { html, useChanges, useLayoutEffect, useRef, useState } from "./html.js";
import { AttachmentList } from "./attachment_list.js";
import { Icon, IconButton } from "./icons.js";
import { IS_TOUCH } from "./shortcuts.js";

const MUCH = 0.5;

export function Composer({ state, onTools }) {
  const { answering, conversations, drafts, models, notices } = state;
  useChanges(answering, conversations, drafts, models);
  const [text, setText] = useState("");
  const field = useRef(null);
  const [isWaiting, setWaiting] = useState(false);
  const isBusy = Boolean(answering.current);
  const canSend = !isWaiting && (text.trim() || drafts.attachments.length || drafts.isReading);
  useGrowing(field, text);
  useLayoutEffect(() => IS_TOUCH || field.current.focus(), [conversations.current?.id]);
  useLayoutEffect(() => {
    if (!IS_TOUCH && document.activeElement.matches("body, :disabled")) field.current.focus(); // the button's work is done
  }, [isBusy]);
  const send = async (event) => {
    event?.preventDefault();
    if (!canSend) return;
    setWaiting(true);
    await conversations.opening.catch(() => {}); // the message is for the conversation that the user has chosen last
    const { current } = conversations;
    const isWhole = await drafts.whenRead();
    if (!models.current) await models.refresh(); // it may ask for the key
    setWaiting(false);
    if (!isWhole || conversations.current?.id !== current?.id) return; // the user decides again
    if (models.current) {
      setText("");
      if (answering.current) answering.queue(text.trim(), drafts.take());
      else answering.ask(text.trim(), drafts.take());
    } else if (models.isKnown) notices.show(NO_MODEL, current?.id ?? NEW_CHAT);
  };
  const onKeyDown = (event) => {
    const isSent = event.key === "Enter" && !event.shiftKey && !event.isComposing && (!IS_TOUCH || event.ctrlKey || event.metaKey);
    if (!isSent) return;
    event.preventDefault();
    send();
  };
  return html`<form class="composer" onSubmit=${send}>
    <${DropTarget} drafts=${drafts} models=${models} />
    <${Queue} answering=${answering} isBusy=${isBusy} />
    <div class="composer-box">
      <${AttachmentList} attachments=${drafts.attachments} onRemove=${(each) => drafts.remove(each)} />
      <textarea
        id="composer"
        rows="1"
        placeholder="Write a message"
        aria-label="Message"
        value=${text}
        readonly=${isWaiting}
        ref=${field}
        onInput=${({ target }) => setText(target.value)}
        onKeyDown=${onKeyDown}
        onPaste=${(event) => pasteFiles(event, drafts, models)}
      />
      <div class="composer-actions">
        <${AttachButton} drafts=${drafts} models=${models} />
        <${ToolsButton} state=${state} onTools=${onTools} />
        <span class="gap" />
        <span class="faint">${notesOf({ conversations, drafts, models, isWaiting })}</span>
        ${isBusy
          ? html`${canSend && html`<button type="submit" class="send" data-action="queue" aria-label="Send after this answer" title="Send after this answer (Enter)"><${Icon} name="send" /></button>`}
              <button type="button" class="send stop" data-action="stop" aria-label="Stop the answer" title="Stop (Esc)" onClick=${() => answering.stop()}><${Icon} name="stop" /></button>`
          : html`<button type="submit" class="send" data-action="send" aria-label="Send message" title="Send (Enter)" disabled=${!canSend}><${Icon} name="send" /></button>`}
      </div>
    </div>
  </form>`;
}

/** The messages that wait for the end of the answer. */
function Queue({ answering, isBusy }) {
  const { queued } = answering;
  if (!queued.length) return null;
  return html`<ul class="queue" aria-label="Messages that wait">
    ${queued.map(
      (message, index) => html`<li>
        <span class="queued-text">${message.text || message.attachments.map(({ name }) => name).join(", ")}</span>
        ${!isBusy && index === 0 && html`<button type="button" class="quiet" onClick=${() => answering.sendQueued()}>Send now</button>`}
        <${IconButton} icon="close" label="Remove from the queue" onClick=${() => answering.unqueue(message)} />
      </li>`,
    )}
  </ul>`;
}

/** Make a field as high as its text. */
function useGrowing(field, text) {
  useLayoutEffect(() => {
    field.current.style.height = "auto";
    field.current.style.height = `${field.current.scrollHeight}px`;
  }, [text]);
}

function AttachButton({ drafts, models }) {
  const input = useRef(null);
  const onChange = ({ target }) => {
    drafts.attach([...target.files], models.current);
    target.value = ""; // the same file can be chosen again
  };
  return html`<input type="file" multiple hidden data-input="files" ref=${input} onChange=${onChange} />
    <${IconButton} icon="clip" label="Add images, sounds, texts or PDFs" onClick=${() => input.current.click()} />`;
}

/** Opens the choice of tools, and shows how many the chat offers. */
function ToolsButton({ state: { tools, toolRuns }, onTools }) {
  useChanges(tools);
  if (!tools.servers.length) return null;
  const count = toolRuns.chosen().filter((name) => tools.find(name)).length;
  const label = count ? `Tools: ${count} chosen` : "Tools";
  return html`<${IconButton} icon="tools" label=${label} data-action="tools" onClick=${onTools}>${count > 0 && html`<span class="count" aria-hidden="true">${count}</span>`}<//>`;
}

/** The whole window takes files that are dropped. */
function DropTarget({ drafts, models }) {
  const [isOver, setOver] = useState(false);
  useLayoutEffect(() => {
    const end = new AbortController();
    const listen = (name, handle) => addEventListener(name, handle, { signal: end.signal });
    const hasFiles = (event) => event.dataTransfer?.types.includes("Files");
    listen("dragover", (event) => hasFiles(event) && (event.preventDefault(), setOver(true)));
    listen("dragleave", (event) => event.relatedTarget === null && setOver(false));
    listen("drop", (event) => {
      setOver(false);
      if (!hasFiles(event)) return;
      event.preventDefault();
      drafts.attach([...event.dataTransfer.files], models.current);
    });
    return () => end.abort();
  }, []);
  return isOver && html`<div class="drop-target" aria-hidden="true">Drop images, sounds, texts or PDFs here</div>`;
}

function pasteFiles(event, drafts, models) {
  const files = [...event.clipboardData.files];
  if (!files.length) return;
  event.preventDefault();
  drafts.attach(files, models.current);
}

/** Return what goes with the next message without being in sight. */
function notesOf({ conversations, drafts, models, isWaiting }) {
  if (drafts.isReading) return isWaiting ? "The message waits for its files…" : "Reading files…";
  const use = contextUse(conversations.path, models.current?.context_length);
  const context = use > MUCH && `${Math.round(use * 100)} % of the context used`;
  return [...namesInUse(getSettings()), conversations.current?.truncates && "Oldest messages left out", context].filter(Boolean).join(" · ");
}
