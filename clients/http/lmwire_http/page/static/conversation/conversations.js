// The conversations of this browser, and the one that is open.
import { Observable } from "../observable.js";
import { NEW_CHAT } from "../notices.js";
import { Channel } from "./channel.js";
import { Database } from "./database.js";
import { newId } from "./ids.js";
import { Saving } from "./saving.js";
import { excerpt } from "./search.js";
import { holdTab, isOpen, THIS_TAB, whenEnded } from "./tabs.js";
import { newestLeaf, pathTo, versionsOf } from "./tree.js";

const TITLE_CHARACTERS = 60;
const MAX_RESULTS = 50;

export class Conversations extends Observable {
  /** All conversations, the latest first. */
  list = [];
  /** The open conversation; null for a new one. */
  current = null;
  /** Messages of the open conversation by id. */
  messages = new Map();
  /** Changes of one message's content, which come often. */
  contents = new Observable();
  /** Settles once the conversation that was chosen last is open. */
  opening = null;
  #notices;
  #database = null;
  #channel = new Channel();
  #saving = null;
  #loaded = new Map();
  #newsOf = new Map();
  #watched = new Set();
  #wanted = "";
  #frame = 0;

  constructor(notices) {
    super();
    this.#notices = notices;
  }

  get path() {
    return this.current ? pathTo(this.messages, this.current.leaf) : [];
  }

  async start() {
    await holdTab();
    const database = new Database();
    try {
      await database.open();
      this.#database = database;
      this.list = byLatest(await database.conversations());
    } catch {
      this.#notices.show("This window keeps no conversations: they end with the page.");
    }
    this.#saving = new Saving(this.#database, this.#channel, (error) => this.#report(error));
    this.#channel.listen({
      message: (message) => this.#receive(message),
      conversation: ({ id, fields }) => this.#apply(id, fields),
      deleted: (id) => this.#forget(id),
      hello: () => this.#saveRunning(),
    });
    await this.open(location.hash.slice(1));
  }

  /** Open a conversation; a new one if the id is not known. */
  open(id) {
    return (this.opening = this.#open(id));
  }

  async #open(id) {
    this.#wanted = id;
    if (this.get(id) && !this.#loaded.has(id)) await this.#load(id);
    if (this.#wanted !== id) return; // another one was opened meanwhile
    const found = this.get(id);
    this.current = found;
    this.messages = (found && this.#loaded.get(id)) ?? new Map();
    history.replaceState(null, "", found ? `#${id}` : location.pathname + location.search);
    this.changed();
  }

  /** Create a conversation with further fields, and open it. */
  create(text, fields = {}) {
    const title = text.trim().replace(/\s+/g, " ").slice(0, TITLE_CHARACTERS) || "Conversation";
    const now = Date.now();
    const conversation = { id: newId(), title, created: now, updated: now, leaf: null, ...fields };
    this.#loaded.set(conversation.id, new Map());
    this.list = [conversation, ...this.list];
    this.#saving.saveConversation(conversation.id, conversation);
    this.#notices.dismiss(NEW_CHAT);
    this.open(conversation.id);
  }

  /** Add a message below another one and show it. Returns the message. */
  add(conversation, fields) {
    const message = { id: newId(), conversation, created: Date.now(), content: "", ...fields };
    this.#loaded.get(conversation).set(message.id, message);
    this.#saving.save(message);
    this.update(conversation, { leaf: message.id, updated: Date.now() });
    return message;
  }

  update(id, fields) {
    if (this.current?.id === id && fields.leaf) this.current = { ...this.current, leaf: fields.leaf };
    this.#apply(id, fields);
    this.#saving.saveConversation(id, fields);
  }

  get(id) {
    return this.list.find((each) => each.id === id) ?? null;
  }

  has(id) {
    return this.#loaded.has(id);
  }

  messagesOf(conversation) {
    return this.#loaded.get(conversation) ?? new Map();
  }

  /** Take note that a message of this tab has changed. The views are told once per frame. */
  touch(message, { now = false } = {}) {
    if (!this.#loaded.has(message.conversation)) return; // deleted meanwhile
    if (now) this.#saving.save(message);
    else this.#saving.saveSoon(message);
    this.#showSoon();
  }

  versionsOf(message) {
    return versionsOf(this.messages, message);
  }

  /** Return the answers that are shown beside a message, itself included; none if it stands alone. */
  besideOf(message) {
    return message?.isBeside ? this.versionsOf(message).filter(({ isBeside }) => isBeside) : [];
  }

  /** Show another version of a message, with the newest messages below it. */
  show(message) {
    this.update(message.conversation, { leaf: newestLeaf(this.messages, message.id) });
  }

  async delete(id) {
    this.#forget(id);
    this.#channel.post("deleted", id);
    await this.#database?.deleteConversation(id);
  }

  async deleteAll() {
    for (const { id } of [...this.list]) await this.delete(id);
    await this.#database?.deleteAll();
  }

  /** Return everything, as it is stored. */
  async exportAll() {
    const conversations = [];
    for (const conversation of this.list) {
      const messages = this.#loaded.get(conversation.id)?.values() ?? (await this.#database.messages(conversation.id));
      conversations.push({ ...conversation, messages: [...messages] });
    }
    return { format: "lmwire-conversations", version: 1, conversations };
  }

  /** Add conversations of a file, as { conversation, messages }. Returns how many were not there yet. */
  async importAll(imported) {
    const added = imported.filter(({ conversation }, index) => {
      const isFirst = imported.findIndex((each) => each.conversation.id === conversation.id) === index;
      return isFirst && !this.get(conversation.id);
    });
    for (const { conversation, messages } of added) {
      await this.#database?.add(conversation, messages);
      if (!this.#database) this.#loaded.set(conversation.id, new Map(messages.map((message) => [message.id, message])));
      this.#apply(conversation.id, conversation);
      this.#channel.post("conversation", { id: conversation.id, fields: conversation });
    }
    return added.length;
  }

  /** Return the conversations with a text in their titles or messages, the latest first: { id, title, updated, part }. */
  async search(wanted) {
    const parts = new Map();
    const note = ({ conversation, content }) => {
      const part = parts.has(conversation) ? null : excerpt(content, wanted);
      if (part) parts.set(conversation, part);
    };
    if (wanted && this.#database) await this.#database.eachMessage(note);
    else if (wanted) for (const messages of this.#loaded.values()) messages.forEach(note);
    const isFound = ({ id, title }) => parts.has(id) || title.toLowerCase().includes(wanted.toLowerCase());
    const found = this.list.filter(isFound).slice(0, MAX_RESULTS);
    return found.map(({ id, title, updated }) => ({ id, title, updated, part: parts.get(id) }));
  }

  flush() {
    this.#saving.flush();
  }

  /** Save answers that this page will not receive to their end, and let other tabs know. */
  leave() {
    this.#saveRunning({ state: "interrupted" });
  }

  async #load(id) {
    const news = this.#newsOf.get(id) ?? []; // what other tabs write meanwhile
    this.#newsOf.set(id, news);
    const messages = (await this.#database?.messages(id)) ?? [];
    const areLive = await Promise.all(messages.map(({ state, tab }) => state === "running" && isOpen(tab)));
    if (this.#loaded.has(id)) return; // it was opened twice
    this.#loaded.set(id, new Map(messages.map((message) => [message.id, message])));
    messages.forEach((message, index) => this.#follow(message, areLive[index]));
    this.#newsOf.delete(id);
    news.forEach((message) => this.#receive(message));
    this.#channel.post("hello"); // another tab may be writing an answer
  }

  /** Note whether another tab receives a message. When that tab ends, so does the message. */
  #follow(message, isLive) {
    const { tab } = message;
    message.isLive = isLive;
    if (!isLive || this.#watched.has(tab)) return;
    this.#watched.add(tab);
    whenEnded(tab).then(() => {
      this.#watched.delete(tab);
      for (const messages of this.#loaded.values()) {
        for (const each of messages.values()) if (each.tab === tab) each.isLive = false;
      }
      this.changed();
    });
  }

  #apply(id, fields) {
    const found = this.get(id);
    if (!found && !fields.title) return; // another tab has deleted it
    const conversation = { ...found, ...fields, id };
    this.list = byLatest([conversation, ...this.list.filter((each) => each.id !== id)]);
    if (this.current?.id === id) this.current = this.#kept(conversation);
    this.changed();
  }

  /** Return the open conversation. Another tab moves its end only if it goes on with what this tab shows. */
  #kept(conversation) {
    const { leaf } = this.current;
    const goesOn = !leaf || pathTo(this.messages, conversation.leaf).some(({ id }) => id === leaf);
    return goesOn ? conversation : { ...conversation, leaf };
  }

  #receive(message) {
    const messages = this.#loaded.get(message.conversation);
    if (!messages) return void this.#newsOf.get(message.conversation)?.push(message);
    const isNew = !messages.has(message.id);
    const record = Object.assign(messages.get(message.id) ?? {}, message);
    this.#follow(record, record.state === "running");
    messages.set(message.id, record);
    if (isNew) this.changed();
    this.#showSoon();
  }

  #saveRunning(fields) {
    for (const messages of this.#loaded.values()) {
      for (const message of messages.values()) {
        if (message.state === "running" && message.tab === THIS_TAB) this.#saving.save({ ...message, ...fields });
      }
    }
  }

  #forget(id) {
    this.list = this.list.filter((each) => each.id !== id);
    this.#loaded.delete(id);
    this.#saving.forget(id);
    if (this.current?.id === id) this.open("");
    this.changed();
  }

  #report(error) {
    const isFull = error?.name === "QuotaExceededError";
    const advice = isFull ? "The browser's storage is full: delete conversations." : "The browser cannot store this.";
    this.#notices.show(`${advice} New messages are lost when the page closes.`);
  }

  #showSoon() {
    this.#frame ||= requestAnimationFrame(() => {
      this.#frame = 0;
      this.contents.changed();
    });
  }
}

function byLatest(conversations) {
  return conversations.sort((one, other) => other.updated - one.updated);
}
