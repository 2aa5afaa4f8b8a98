// The field for the next message.
import { contextUse } from "../conversation/figures.js";
import { getSettings, namesInUse } from "../conversation/settings.js";
import { NO_MODEL } from "../server/models.js";
import { html, useChanges, useLayoutEffect, useRef, useState } from "./html.js";
import { AttachmentList } from "./attachment_list.js";
import { Icon, IconButton } from "./icons.js";
import { IS_TOUCH } from "./shortcuts.js";

const MUCH = 0.5;

export function Composer({ state }) {
  const { answering, conversations, drafts, models, notices } = state;
  useChanges(conversations, drafts, models);
  const [text, setText] = useState("");
  const field = useRef(null);
  const [isWaiting, setWaiting] = useState(false);
  const isBusy = Boolean(answering.current);
  const canSend = !isBusy && !isWaiting && (text.trim() || drafts.attachments.length || drafts.isReading);
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
    if (!isWhole || answering.current || conversations.current?.id !== current?.id) return; // the user decides again
    if (models.current) {
      setText("");
      answering.ask(text.trim(), drafts.take());
    } else if (models.isKnown) notices.show(NO_MODEL);
  };
  const onKeyDown = (event) => {
    const isSent = event.key === "Enter" && !event.shiftKey && !event.isComposing && (!IS_TOUCH || event.ctrlKey || event.metaKey);
    if (!isSent) return;
    event.preventDefault();
    send();
  };
  return html`<form class="composer" onSubmit=${send}>
    <${DropTarget} drafts=${drafts} models=${models} />
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
        <span class="gap" />
        <span class="faint">${notesOf({ conversations, drafts, models, isWaiting })}</span>
        ${isBusy
          ? html`<button type="button" class="send stop" data-action="stop" aria-label="Stop the answer" title="Stop (Esc)" onClick=${() => answering.stop()}><${Icon} name="stop" /></button>`
          : html`<button type="submit" class="send" data-action="send" aria-label="Send message" title="Send (Enter)" disabled=${!canSend}><${Icon} name="send" /></button>`}
      </div>
    </div>
  </form>`;
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
    <${IconButton} icon="clip" label="Add images, sounds or texts" onClick=${() => input.current.click()} />`;
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
  return isOver && html`<div class="drop-target" aria-hidden="true">Drop images, sounds or texts here</div>`;
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
  return [...namesInUse(getSettings()), context].filter(Boolean).join(" · ");
}
