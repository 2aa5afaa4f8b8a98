// Saves changes, and running answers at intervals.
const INTERVAL_MS = 300;

export class Saving {
  #database;
  #channel;
  #onProblem;
  #pending = new Map();
  #timer = 0;

  /** The database is null if this window keeps none. */
  constructor(database, channel, onProblem) {
    this.#database = database;
    this.#channel = channel;
    this.#onProblem = onProblem;
  }

  /** Save a message now. */
  async save(message) {
    this.#pending.delete(message.id);
    const { isLive, ...record } = message; // it holds for this tab alone
    this.#channel.post("message", record);
    await this.#attempt((database) => database.putMessage(record));
  }

  /** Save a message soon, together with what comes until then. */
  saveSoon(message) {
    this.#pending.set(message.id, message);
    this.#timer ||= setTimeout(() => this.flush(), INTERVAL_MS);
  }

  /** Save nothing more of a conversation that was deleted. */
  forget(conversation) {
    for (const message of this.#pending.values()) if (message.conversation === conversation) this.#pending.delete(message.id);
  }

  flush() {
    clearTimeout(this.#timer);
    this.#timer = 0;
    for (const message of [...this.#pending.values()]) this.save(message);
  }

  async saveConversation(id, fields) {
    this.#channel.post("conversation", { id, fields });
    await this.#attempt((database) => database.updateConversation(id, fields));
  }

  async #attempt(action) {
    if (!this.#database) return;
    try {
      await action(this.#database);
    } catch (error) {
      this.#onProblem(error);
    }
  }
}
