// Asks the server, and writes each answer into its message.
import { readEvents, send, ServerError } from "../server/client.js";
import { adviceFor } from "./advice.js";
import { addChunk } from "./answer_chunks.js";
import { chatRequest } from "./chat_request.js";
import { getSettings } from "./settings.js";
import { THIS_TAB } from "./tabs.js";
import { pathTo } from "./tree.js";

export class Answering {
  #conversations;
  #models;
  #connection;
  #running = new Map();

  constructor({ conversations, models, connection }) {
    this.#conversations = conversations;
    this.#models = models;
    this.#connection = connection;
    connection.onReconnect(() => this.#retryLocked());
  }

  /** The answer of the open conversation that this tab receives; null if there is none. */
  get current() {
    return this.#conversations.path.find(({ id }) => this.#running.has(id)) ?? null;
  }

  /** Send the user's message and answer it. */
  async ask(text, attachments = []) {
    if (!this.#conversations.current) this.#conversations.create(text || attachments[0]?.name || "");
    const { id, leaf } = this.#conversations.current;
    const message = this.#conversations.add(id, { role: "user", parent: leaf, content: text, attachments });
    await this.#answer(message);
  }

  /** Answer with another version of a user's message. */
  async edit(message, text) {
    const { conversation, parent, attachments } = message;
    await this.#answer(this.#conversations.add(conversation, { role: "user", parent, content: text, attachments }));
  }

  /** Write another version of an answer. */
  async regenerate(message) {
    await this.#answer(this.#conversations.messages.get(message.parent));
  }

  /** Go on with an answer that was cut off. */
  async continue(message) {
    await this.#run(message);
  }

  /** Ask the chosen model again for an answer that failed before its first word. */
  async retry(message) {
    await this.#run(Object.assign(message, { model: this.#models.current?.id ?? message.model, reasoning: "", calls: undefined }));
  }

  /** Send the results of an answer's tool calls, in the order of the calls, and answer them. */
  async giveResults(message, results) {
    let parent = message;
    for (const [index, content] of results.entries()) {
      const { id: callId, name } = message.calls[index];
      const fields = { role: "tool", parent: parent.id, content, callId, name };
      parent = this.#conversations.add(message.conversation, fields);
    }
    await this.#answer(parent);
  }

  stop() {
    if (this.current) this.#running.get(this.current.id).abort();
  }

  async #answer(parent) {
    const fields = { role: "assistant", parent: parent.id, state: "running", tab: THIS_TAB, model: this.#models.current?.id ?? "" };
    await this.#run(this.#conversations.add(parent.conversation, fields));
  }

  async #run(message) {
    const abort = new AbortController();
    this.#running.set(message.id, abort);
    const clock = startClock(message);
    Object.assign(message, { state: "running", tab: THIS_TAB, problem: "", advice: "", finish: "" });
    this.#conversations.changed();
    const stopWatching = this.#models.get(message.model)?.loaded ? () => {} : this.#models.watch();
    try {
      await this.#receive(message, abort.signal, clock, stopWatching);
      message.state = "done";
    } catch (error) {
      this.#fail(message, error);
    }
    stopWatching();
    clock.end();
    delete message.tab;
    delete message.promptProgress;
    this.#running.delete(message.id);
    this.#conversations.touch(message, { now: true });
    this.#conversations.changed();
  }

  async #receive(message, signal, clock, onFirst) {
    const messages = pathTo(this.#conversations.messagesOf(message.conversation), message.id);
    const turns = message.content ? messages : messages.slice(0, -1);
    const body = chatRequest(message.model, turns, getSettings());
    let isStarted = false;
    for await (const data of readEvents(await send("v1/chat/completions", { body, signal }))) {
      if (data === "[DONE]") return;
      if (!this.#conversations.has(message.conversation)) this.#running.get(message.id).abort();
      const hasPart = addChunk(message, JSON.parse(data));
      if (hasPart) clock.tick();
      if (hasPart && !isStarted) {
        isStarted = true;
        onFirst();
        this.#models.refresh();
      }
      this.#conversations.touch(message);
    }
    throw new ServerError("The connection to the server was lost.", 0);
  }

  #fail(message, error) {
    if (error.name === "AbortError") {
      message.state = "stopped";
      return;
    }
    message.state = "failed";
    message.problem = error.message;
    message.advice = adviceFor(error);
    message.isLocked = error.status === 401;
    if (error.status !== undefined) this.#connection.noteFailure(error);
  }

  /** Answer again what failed for want of a key. */
  #retryLocked() {
    const last = this.#conversations.path.at(-1);
    if (!last?.isLocked) return;
    delete last.isLocked;
    this.#run(last);
  }
}

/** Return a clock that writes the times of an answer into its message. */
function startClock(message) {
  const startedAt = performance.now();
  let firstAt = 0;
  let lastAt = 0;
  message.timing = null;
  return {
    tick() {
      lastAt = performance.now();
      firstAt ||= lastAt;
    },
    end() {
      if (firstAt) message.timing = { first: firstAt - startedAt, stream: lastAt - firstAt };
    },
  };
}
