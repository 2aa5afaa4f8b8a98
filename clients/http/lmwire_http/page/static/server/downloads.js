// Downloads of models by the server, where its operator allows them. One runs at a time, for all who use the server.
import { Observable } from "../observable.js";
import { fetchJson } from "./client.js";

const PATH = "v1/models/download";
const POLL_MS = 500;

export class Downloads extends Observable {
  isAllowed = false;
  /** The download that runs, or the last one: { model, state, current_bytes, total_bytes, problem }. Null without one. */
  current = null;
  #ended;
  #isWatching = false;

  /** @param onEnd Called with each download whose end this page sees. */
  constructor(onEnd) {
    super();
    this.#ended = onEnd;
  }

  get isRunning() {
    return this.current?.state === "running";
  }

  /** Ask for the state, and follow a download that runs, also one that another page has started. */
  async refresh() {
    const answer = await fetchJson(PATH).catch(() => null); // what fails is shown elsewhere
    if (answer) this.#take(answer);
  }

  /** Return the size of a model's files, before any is fetched. Throws ServerError, and AbortError by the signal. */
  size(model, signal) {
    return fetchJson(`${PATH}/size`, { body: { model }, signal });
  }

  /** Start the download of at most so many bytes. Throws ServerError. */
  async start(model, maxBytes) {
    this.#take(await fetchJson(PATH, { body: { model, max_bytes: maxBytes } }));
  }

  /** Cancel the download. What has arrived stays on the server. Throws ServerError. */
  async cancel() {
    this.#take(await fetchJson(PATH, { method: "DELETE" }));
  }

  #take({ allowed, download }) {
    const wasRunning = this.isRunning;
    this.isAllowed = allowed;
    this.current = download;
    if (wasRunning && !this.isRunning) this.#ended(download);
    if (this.isRunning && !this.#isWatching) this.#watch();
    this.changed();
  }

  async #watch() {
    this.#isWatching = true;
    while (this.isRunning) {
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
      await this.refresh();
    }
    this.#isWatching = false;
  }
}

/** Return how far a download has come, from 0 to 1. Null while its size is unknown. */
export function downloaded({ current_bytes: current, total_bytes: total }) {
  return total ? Math.min(1, current / total) : null;
}

/** Return how a download has ended, as sentences. */
export function endOf({ model, state, problem }) {
  if (state === "done") return `${model} has been downloaded. It is among the models now.`;
  if (state === "cancelled") return `The download of ${model} was cancelled. What has arrived stays, and the next download goes on from there.`;
  return `${model} has not been downloaded: ${problem}.`;
}

/** Return a number of bytes in decimal units, such as "1.5 GB". */
export function formatBytes(count) {
  return count >= 1e9 ? `${(count / 1e9).toFixed(1)} GB` : `${(count / 1e6).toFixed(1)} MB`;
}
