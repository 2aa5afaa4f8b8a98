// News between the tabs of this page. A tab does not receive its own.
const NAME = "lmwire";

export class Channel {
  #channel = typeof BroadcastChannel === "function" ? new BroadcastChannel(NAME) : null;
  #handle = (news) => this.#early.push(news);
  #early = [];

  constructor() {
    if (this.#channel) this.#channel.onmessage = ({ data }) => this.#handle(data);
  }

  /** Call the handler of each kind of news: { message, conversation, deleted, hello }. Earlier news come first. */
  listen(handlers) {
    this.#handle = ({ kind, value }) => handlers[kind]?.(value);
    this.#early.splice(0).forEach(this.#handle);
  }

  post(kind, value) {
    this.#channel?.postMessage({ kind, value });
  }
}
