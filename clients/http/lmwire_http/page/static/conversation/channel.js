// News between the tabs of this page. A tab does not receive its own.
const NAME = "lmwire";

export class Channel {
  #channel = typeof BroadcastChannel === "function" ? new BroadcastChannel(NAME) : null;

  /** Call the handler of each kind of news: { message, conversation, deleted, hello }. */
  listen(handlers) {
    if (this.#channel) this.#channel.onmessage = ({ data: { kind, value } }) => handlers[kind]?.(value);
  }

  post(kind, value) {
    this.#channel?.postMessage({ kind, value });
  }
}
