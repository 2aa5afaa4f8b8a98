// The models of the server: which there are, which one is chosen, and how far a load has come.
import { Observable } from "../observable.js";
import { getPreference, setPreference } from "../preferences.js";
import { fetchJson } from "./client.js";

const POLL_MS = 400;
export const NO_MODEL = "The server has no model that can chat. Start it with one: lmwire serve builtin:tiny";

export class Models extends Observable {
  list = [];
  isKnown = false;
  /** Problems of loads, by the model's id. */
  problems = new Map();
  #connection;
  #chosen = getPreference("model", "");
  #busy = new Set();
  #watchers = new Set();
  #described = new Map();
  #isPolling = false;
  #asked = 0;
  #answered = 0;

  constructor(connection) {
    super();
    this.#connection = connection;
  }

  /** The chosen model, else the server's first one; null if there is none. */
  get current() {
    const { list } = this;
    return list.find(({ id }) => id === this.#chosen) ?? list[0] ?? null;
  }

  get(id) {
    return this.list.find((model) => model.id === id) ?? null;
  }

  choose(id) {
    this.#chosen = id;
    setPreference("model", id);
    this.changed();
  }

  isBusy(id) {
    return this.#busy.has(id);
  }

  /** Return what the server knows of a model's files: { details, capabilities }. Null without an answer. */
  describe(id) {
    if (!this.#described.has(id)) {
      this.#described.set(id, fetchJson("api/show", { body: { model: id } }).catch(() => null));
    }
    return this.#described.get(id);
  }

  async refresh() {
    const number = (this.#asked += 1);
    const { data, models, error } = await fetchJson("v1/models").catch((problem) => ({ error: problem }));
    if (number < this.#answered) return; // the answer to a later request came first
    this.#answered = number;
    if (error) this.#connection.noteFailure(error);
    else {
      const chatting = new Set(models.map(({ slug }) => slug)); // the list for agents has those that can chat
      this.list = data.filter((model) => chatting.has(model.id) || model.capabilities?.includes("transcribe"));
      this.isKnown = true;
      this.#connection.noteSuccess();
    }
    this.changed();
  }

  load(id) {
    return this.#change(id, "v1/models/load");
  }

  unload(id) {
    return this.#change(id, "v1/models/unload");
  }

  /** Ask for the models again and again until the returned function is called, to show how a load goes on. */
  watch() {
    const watcher = {};
    this.#watchers.add(watcher);
    if (!this.#isPolling) this.#poll();
    return () => this.#watchers.delete(watcher);
  }

  async #change(id, path) {
    this.#busy.add(id);
    this.problems.delete(id);
    this.changed();
    const stop = this.watch();
    try {
      await fetchJson(path, { body: { model: id } });
    } catch (error) {
      this.problems.set(id, error.message);
      this.#connection.noteFailure(error);
    } finally {
      this.#busy.delete(id);
      stop();
      await this.refresh();
    }
  }

  async #poll() {
    this.#isPolling = true;
    while (this.#watchers.size) {
      await this.refresh();
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    }
    this.#isPolling = false;
  }
}

/** Return how a load goes on, as { text, value }: value is from 0 to 1, or null if unknown. Null without a load. */
export function loadProgress(model) {
  if (model?.state !== "loading") return null;
  const progress = model.load_progress;
  if (!progress) return { text: "Loading", value: null };
  const text = { download: "Downloading", warm_up: "Warming up" }[progress.stage] ?? "Loading";
  return { text, value: progress.total ? progress.current / progress.total : null };
}

/** Return whether a model only shows how everything works: its answers have no sense. */
export function isToy({ id }) {
  return id.startsWith("builtin:");
}

/** Return whether a model takes a kind of input: "images" or "sounds". Null while that is unknown. */
export function takes(model, kind) {
  if (!model?.capabilities) return null;
  return model.capabilities.includes(kind) || (kind === "sounds" && model.capabilities.includes("transcribe"));
}
