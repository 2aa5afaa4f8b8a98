// Whether the server answers, and whether it wants an API key.
import { Observable } from "../observable.js";
import { apiKey } from "./api_key.js";
import { send } from "./client.js";

const FIRST_RETRY_MS = 500;
const LAST_RETRY_MS = 2000;

export class Connection extends Observable {
  /** "online", "offline" or "locked": a key is needed. */
  state = "online";
  /** Whether the server has refused a key that it was given. */
  hasWrongKey = false;
  #reconnected = [];

  /** Call the function when the server answers again, and when a key has been entered. */
  onReconnect(callback) {
    this.#reconnected.push(callback);
  }

  /** Take note of a request that failed. */
  noteFailure(error) {
    if (error.status === 401) {
      this.hasWrongKey = Boolean(apiKey.value);
      this.#set("locked");
    }
    if (error.status === 0 && this.state !== "offline") {
      this.#set("offline");
      this.#retry();
    }
  }

  noteSuccess() {
    if (this.state !== "online") this.#set("online");
  }

  unlock(key, isRemembered) {
    apiKey.set(key, isRemembered);
    this.#reconnect();
  }

  /** The user has closed the question for a key. The next refused request asks again. */
  dismiss() {
    if (this.state === "locked") this.#set("online");
  }

  async #retry() {
    for (let delay = FIRST_RETRY_MS; this.state === "offline"; delay = Math.min(delay * 2, LAST_RETRY_MS)) {
      await new Promise((resolve) => setTimeout(resolve, delay));
      const isThere = await send("health").then(() => true, ({ status }) => status !== 0); // well or not
      if (isThere && this.state === "offline") this.#reconnect(); // else a request was answered, or refused for want of a key
    }
  }

  #reconnect() {
    this.#set("online");
    for (const callback of this.#reconnected) callback();
  }

  #set(state) {
    this.state = state;
    this.changed();
  }
}
