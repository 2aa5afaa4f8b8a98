import { type Message, type ProgressEvent, type StartOptions, Supervisor, WorkerLost } from "lmwire";
import type { ChatEvent } from "./api.js";

type Task = (signal: AbortSignal) => Promise<ChatEvent>;

/**
 * A conversation with a model in a worker process. It knows nothing of Electron.
 *
 * Loads and answers run one at a time, in order. Each ends with one event. After the worker has died, the next message
 * starts a new one and loads the model again.
 */
export class ChatService {
  readonly #emit: (event: ChatEvent) => void;
  readonly #start: StartOptions;
  #supervisor: Supervisor | undefined;
  #messages: Message[] = [];
  #lastTask: Promise<void> = Promise.resolve();
  #stopper = new AbortController();
  #isClosed = false;

  /**
   * @param emit - Called with each event. It must not throw.
   * @param start - How workers start. By default the one in the app's resources is found.
   */
  constructor(emit: (event: ChatEvent) => void, start: StartOptions = {}) {
    this.#emit = emit;
    this.#start = start;
  }

  /** Load a model in a new worker, and start a new conversation. */
  load(model: string): Promise<void> {
    return this.#run(async () => {
      await this.#supervisor?.close();
      this.#messages = [];
      this.#supervisor = this.#supervise(model);
      await this.#supervisor.worker();
      return { type: "loaded", model };
    });
  }

  /** Answer the user's next message. A message without an answer is not part of the conversation. */
  chat(text: string): Promise<void> {
    return this.#run(async (signal) => {
      if (!this.#supervisor) throw new Error("no model is loaded");
      const worker = await this.#supervisor.worker();
      signal.throwIfAborted();
      const messages: Message[] = [...this.#messages, { role: "user", content: text }];
      const stream = worker.chat(messages, { reasoning: "off", truncate: "left" });
      signal.addEventListener("abort", () => stream.cancel());
      for await (const text of stream.text()) this.#emit({ type: "text", text });
      const answer = await stream.result();
      if (answer.text) this.#messages = [...messages, { role: "assistant", content: answer.text }];
      return { type: "ended", reason: answer.finish_reason };
    });
  }

  /** End the load that runs, or the answer with its text so far. */
  stop(): void {
    this.#stopper.abort();
  }

  /** End the worker, and return when its process is gone. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.stop();
    await this.#lastTask;
    await this.#supervisor?.close();
  }

  #supervise(model: string): Supervisor {
    const onProgress = ({ stage, current, total, unit }: ProgressEvent) =>
      this.#emit({ type: "progress", stage, current, total, unit });
    return new Supervisor({
      start: this.#start,
      setUp: (worker) => worker.load(model, {}, { signal: this.#stopper.signal, onProgress }),
    });
  }

  #run(task: Task): Promise<void> {
    this.#lastTask = this.#lastTask.then(() => this.#perform(task));
    return this.#lastTask;
  }

  async #perform(task: Task): Promise<void> {
    if (this.#isClosed) return;
    this.#stopper = new AbortController();
    const { signal } = this.#stopper;
    try {
      this.#emit(await task(signal));
    } catch (error) {
      this.#emit(
        signal.aborted ? { type: "ended", reason: "cancelled" } : { type: "failed", message: describe(error) },
      );
    }
  }
}

function describe(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  return error instanceof WorkerLost ? `${message}\nThe next message starts a new worker.` : message;
}
