/** The messages between the page and the main process. Only types: a sandboxed preload script cannot import a file. */

export type Command = { type: "load"; model: string } | { type: "chat"; text: string } | { type: "stop" };

/** A load ends with `loaded`, an answer with `ended`; either can end with `failed`. */
export type ChatEvent =
  | { type: "progress"; stage: string; current: number; total?: number | undefined; unit: string }
  | { type: "loaded"; model: string }
  | { type: "text"; text: string }
  | { type: "ended"; reason: string }
  | { type: "failed"; message: string };

/** What the page can do, as `window.lmwire`. */
export interface LmwireApi {
  /** Load a model: a folder, a hub id or an alias. The conversation starts anew. */
  load(model: string): void;
  /** Send the user's next message. */
  chat(text: string): void;
  /** End the load, or the answer with its text so far. */
  stop(): void;
  onEvent(listener: (event: ChatEvent) => void): void;
}
