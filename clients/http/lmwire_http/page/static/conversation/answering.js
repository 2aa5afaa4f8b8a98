// Asks the server, and writes each answer into its message.
import { Observable } from "../observable.js";
import { readEvents, send, ServerError } from "../server/client.js";
import { adviceFor } from "./advice.js";
import { addChunk } from "./answer_chunks.js";
import { chatRequest } from "./chat_request.js";
import { getSettings } from "./settings.js";
import { THIS_TAB } from "./tabs.js";
import { pathTo } from "./tree.js";

export class Answering extends Observable {
  #queued = new Map();
  #conversations;
  #models;
  #connection;
  #toolRuns;
  #running = new Map();

  constructor({ conversations, models, connection, toolRuns }) {
    super();
    this.#conversations = conversations;
    this.#models = models;
    this.#connection = connection;
    this.#toolRuns = toolRuns;
    toolRuns.onSettled = (message) => this.giveResults(message, message.calls.map(({ outcome }) => outcome));
    connection.onReconnect(() => this.#retryLocked());
  }

  /** The answer of the open conversation that this tab receives, or whose tools it runs; null if there is none. */
  get current() {
    return this.#shownAndRunning()[0] ?? this.#toolRuns.runningIn(this.#conversations.current?.id);
  }

  /** Send the user's message and answer it. */
  async ask(text, attachments = []) {
    if (!this.#conversations.current) this.#conversations.create(text || attachments[0]?.name || "", { tools: this.#toolRuns.chosen() });
    await this.#ask(this.#conversations.current, text, attachments);
  }

  async #ask({ id, leaf }, text, attachments) {
    await this.#answer(this.#conversations.add(id, { role: "user", parent: leaf, content: text, attachments }));
  }

  /** Messages of the open conversation that wait for the end of an answer. */
  get queued() {
    return this.#queued.get(this.#conversations.current?.id) ?? [];
  }

  /** Send a message once the running answer of the open conversation is complete. */
  queue(text, attachments = []) {
    this.#setQueued(this.#conversations.current.id, [...this.queued, { text, attachments }]);
  }

  /** Take a message out of the queue. */
  unqueue(message) {
    this.#setQueued(this.#conversations.current.id, this.queued.filter((each) => each !== message));
  }

  /** Send the first message of a queue. After an answer that failed or was stopped, only the user does that. */
  sendQueued(conversation = this.#conversations.current) {
    const [first, ...others] = this.#queued.get(conversation?.id) ?? [];
    if (!first) return;
    this.#setQueued(conversation.id, others);
    this.#ask(conversation, first.text, first.attachments);
  }

  #setQueued(conversation, messages) {
    this.#queued.set(conversation, messages);
    this.changed();
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

  /** Write another answer of the chosen model beside one. */
  async answerBeside(message) {
    Object.assign(message, { isBeside: true });
    this.#conversations.touch(message, { now: true });
    await this.#answer(this.#conversations.messages.get(message.parent), { isBeside: true });
  }

  /** Go on with an answer that was cut off. */
  async continue(message) {
    await this.#run(message);
  }

  /** Ask the chosen model again for an answer that failed before its first word. */
  async retry(message) {
    await this.#run(Object.assign(message, { model: this.#models.current?.id ?? message.model, reasoning: "", calls: undefined }));
  }

  /** Ask again without the oldest messages, now and from now on in this conversation. */
  async truncate(message) {
    this.#conversations.update(message.conversation, { truncates: true });
    await this.retry(message);
  }

  /** Send the results of an answer's tool calls as { text, isError }, in the order of the calls, and answer them. */
  async giveResults(message, results) {
    let parent = message;
    for (const [index, { text: content, isError }] of results.entries()) {
      const { id: callId, name } = message.calls[index];
      const fields = { role: "tool", parent: parent.id, content, callId, name, ...(isError && { isError }) };
      parent = this.#conversations.add(message.conversation, fields);
    }
    await this.#answer(parent);
  }

  stop() {
    for (const { id } of this.#shownAndRunning()) this.#running.get(id).abort();
    this.#toolRuns.stop(this.#conversations.current?.id);
  }

  /** Return the answers that the user sees, and that this tab receives. */
  #shownAndRunning() {
    const { path } = this.#conversations;
    return [...path, ...this.#conversations.besideOf(path.at(-1))].filter(({ id }) => this.#running.has(id));
  }

  async #answer(parent, fields = {}) {
    const answer = { role: "assistant", parent: parent.id, state: "running", tab: THIS_TAB, model: this.#models.current?.id ?? "" };
    await this.#run(this.#conversations.add(parent.conversation, { ...answer, ...fields }));
  }

  async #run(message) {
    const abort = new AbortController();
    this.#running.set(message.id, abort);
    const clock = startClock(message);
    Object.assign(message, { state: "running", tab: THIS_TAB, problem: "", advice: "", remedies: [], finish: "" });
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
    if (message.state === "done" && message.finish === "tool_calls") this.#toolRuns.begin(message);
    const conversation = this.#conversations.get(message.conversation);
    if (message.state === "done" && message.finish !== "tool_calls" && conversation && !this.#isBusy(conversation)) this.sendQueued(conversation);
  }

  #isBusy({ id }) {
    return [...this.#conversations.messagesOf(id).keys()].some((each) => this.#running.has(each));
  }

  async #receive(message, signal, clock, onFirst) {
    const messages = pathTo(this.#conversations.messagesOf(message.conversation), message.id);
    const turns = message.content ? messages : messages.slice(0, -1);
    const conversation = this.#conversations.get(message.conversation) ?? {};
    const offered = await this.#toolRuns.offered(conversation);
    const body = chatRequest(message.model, turns, { ...getSettings(), truncates: conversation.truncates, offered });
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
    Object.assign(message, adviceFor(error));
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
