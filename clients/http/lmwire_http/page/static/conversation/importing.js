// Conversations from a file: this page's own export, or ChatGPT's conversations.json.
import { newId } from "./ids.js";

const ROLES = ["user", "assistant", "tool"];
const KINDS = { image: "data:image/", sound: "data:audio/", text: "" };
const MAX_TITLE = 200;

const ADVICE = "Choose an export of this page, or conversations.json of ChatGPT's export.";

/** Return the conversations in a file as { conversation, messages }. Throws Error if it has none of a known form. */
export function readConversations(text) {
  let content;
  try {
    content = JSON.parse(text);
  } catch {
    throw new Error(`This file is not JSON. ${ADVICE}`);
  }
  try {
    if (content.format === "lmwire-conversations") return content.conversations.map(fromOwn).filter(Boolean);
    if (content.every(({ mapping }) => mapping)) return content.map(fromChatGpt).filter(Boolean);
  } catch {} // a part is missing, or of another kind
  throw new Error(`This file has no conversations that can be read. ${ADVICE}`);
}

function fromOwn({ id, title, created, updated, leaf, messages }) {
  if (!Array.isArray(messages)) return null;
  return build({ id, title, created, updated, leaf }, messages.map(ownMessage).filter(Boolean));
}

/** Return a message with the fields that the page shows, and no other. */
function ownMessage({ id, parent, role, content, created, attachments, model, reasoning, calls, callId, name, finish, usage }) {
  if (!ROLES.includes(role) || typeof content !== "string") return null;
  const message = { id, parent, role, content, created };
  const texts = { model, reasoning, callId, name, finish };
  for (const [field, value] of Object.entries(texts)) if (typeof value === "string") message[field] = value;
  if (Array.isArray(attachments)) message.attachments = attachments.filter(isAttachment).map(({ kind, name, data }) => ({ kind, name, data }));
  if (Array.isArray(calls)) message.calls = calls.filter(isCall).map((call) => ({ id: call.id, name: call.name, arguments: call.arguments }));
  if (Number.isFinite(usage?.total_tokens) && Number.isFinite(usage.prompt_tokens)) message.usage = usage;
  return role === "assistant" ? { ...message, state: "done" } : message;
}

function isAttachment({ kind, name, data } = {}) {
  return Object.hasOwn(KINDS, kind) && typeof name === "string" && typeof data === "string" && data.startsWith(KINDS[kind]);
}

function isCall(call) {
  return [call?.id, call?.name, call?.arguments].every((value) => typeof value === "string");
}

function fromChatGpt({ id, conversation_id: other, title, create_time: created, update_time: updated, mapping, current_node: leaf }) {
  const messages = Object.entries(mapping).map(([node, { parent, message }]) => chatGptMessage(node, parent, message));
  const times = { created: milliseconds(created), updated: milliseconds(updated) };
  return build({ id: other ?? id, title, leaf, ...times }, messages);
}

/** Return a message. One that the page does not show, such as a system prompt, has no role: its children move up. */
function chatGptMessage(id, parent, message) {
  const { author, content, create_time: created, metadata } = message ?? {};
  const text = (content?.parts ?? []).filter((part) => typeof part === "string").join("\n");
  const role = ["user", "assistant"].includes(author?.role) && text.trim() && !metadata?.is_visually_hidden_from_conversation ? author.role : "";
  const turn = { id, parent, role, content: text, created: milliseconds(created) };
  return role === "assistant" ? { ...turn, state: "done", model: String(metadata?.model_slug ?? "ChatGPT") } : turn;
}

/** Return a conversation whose messages have names of their own, and form a tree. Null if none remains. */
function build({ id, title, created, updated, leaf }, given) {
  const byId = new Map(given.map((message) => [message.id, message]));
  const kept = (start) => {
    const seen = new Set();
    for (let each = byId.get(start); each && !seen.has(each); each = byId.get(each.parent)) {
      if (each.role) return each;
      seen.add(each);
    }
    return null;
  };
  const names = new Map(given.filter(({ role }) => role).map((message) => [message, newId()]));
  if (!names.size || hasLoop(byId)) return null;
  const conversation = { id: typeof id === "string" && id ? id.slice(0, 100) : newId() };
  const messages = [...names].map(([message, name], index) => ({
    ...message,
    id: name,
    parent: names.get(kept(message.parent)) ?? null,
    conversation: conversation.id,
    created: time(message.created) || index, // versions without a time keep their order
  }));
  const last = names.get(kept(leaf)) ?? messages.at(-1).id;
  const latest = Math.max(...messages.map((message) => message.created));
  const name = (typeof title === "string" && title.trim().slice(0, MAX_TITLE)) || "Conversation";
  return {
    conversation: { ...conversation, title: name, created: time(created) || latest, updated: time(updated) || latest, leaf: last },
    messages,
  };
}

/** Return whether a message is its own ancestor. */
function hasLoop(byId) {
  const ends = new Set();
  for (const start of byId.values()) {
    const path = new Set();
    for (let each = start; each && !ends.has(each); each = byId.get(each.parent)) {
      if (path.has(each)) return true;
      path.add(each);
    }
    for (const each of path) ends.add(each);
  }
  return false;
}

function milliseconds(seconds) {
  return typeof seconds === "number" ? seconds * 1000 : 0;
}

function time(value) {
  return Number.isFinite(value) && value > 0 ? value : 0;
}
