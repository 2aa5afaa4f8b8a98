import { onAbort } from "./abort.js";
import type { Connection, Receiver } from "./connection.js";
import { type LmwireError, RequestTimeout } from "./errors.js";
import type { RawEvent } from "./event-check.js";

/** Settings of one request. */
export interface RequestOptions {
  /** Cancels the request when it is aborted. The request then fails with the signal's reason. */
  signal?: AbortSignal;
  /** Gives up the request after this time, in milliseconds. */
  timeoutMs?: number;
}

/** Number of waiting events from which new ones are merged into the last, so that a slow reader costs little memory. */
const MERGE_FROM = 256;

type Outcome = { done: RawEvent } | { error: unknown };

/** A loop that waits for an event. */
interface Reader<TEvent> {
  resolve(result: IteratorResult<TEvent, void>): void;
  reject(error: unknown): void;
}

const END = { value: undefined, done: true } as const;

/**
 * The events of a request as they arrive, and its result.
 *
 * Iterate over it once. If the loop ends early, the request is cancelled. `result` also works without a loop.
 */
export abstract class RequestStream<TEvent, TResult> implements AsyncIterable<TEvent> {
  readonly #connection: Connection;
  readonly #id: string | undefined;
  readonly #cleanups: Array<() => void> = [];
  readonly #waiters: Array<(outcome: Outcome) => void> = [];
  readonly #readers: Array<Reader<TEvent>> = [];
  #events: TEvent[] = [];
  #outcome: Outcome | undefined;
  #isIterated = false;
  #isDiscarding = false;

  /** @internal */
  constructor(connection: Connection, command: string, fields: object, options: RequestOptions = {}) {
    this.#connection = connection;
    const receiver: Receiver = {
      command,
      event: (event) => this.#receive(event),
      done: (done) => this.#settle({ done }),
      failed: (error) => this.#settle({ error }),
    };
    if (options.signal?.aborted) this.#outcome = { error: options.signal.reason };
    else this.#id = connection.send(fields, receiver);
    if (this.#id !== undefined) this.#limit(options);
  }

  /** Take an event into the result, and return what the reader gets; undefined for nothing. */
  protected abstract accept(event: RawEvent): TEvent | undefined;

  /** Return the result of the events and of the `done`. */
  protected abstract finish(done: RawEvent): TResult;

  /** Merge an event into one that waits, and return whether that was possible. */
  protected merge(_waiting: TEvent, _event: TEvent): boolean {
    return false;
  }

  /** Cancel the request. Events and the result so far still come; other kinds of requests fail with `cancelled`. */
  cancel(): void {
    if (this.#id !== undefined) this.#connection.cancel(this.#id);
  }

  /**
   * Return the result once the request has ended.
   *
   * @throws LmwireError if it failed, or the reason of the signal that aborted it.
   */
  async result(): Promise<TResult> {
    if (!this.#isIterated) this.#discard();
    const outcome = this.#outcome ?? (await new Promise<Outcome>((resolve) => this.#waiters.push(resolve)));
    if ("error" in outcome) throw outcome.error;
    return this.finish(outcome.done);
  }

  /** Return an iterator. It is not a generator: for each event, those create several promises and take several turns. */
  [Symbol.asyncIterator](): AsyncIterableIterator<TEvent, void> {
    if (this.#isIterated || this.#isDiscarding) throw new TypeError("the events of a request can be read once");
    this.#isIterated = true;
    return {
      next: () => this.#next(),
      return: () => this.#leave(),
      [Symbol.asyncIterator]() {
        return this;
      },
    };
  }

  #next(): Promise<IteratorResult<TEvent, void>> {
    const event = this.#events.shift();
    if (event !== undefined) return Promise.resolve({ value: event, done: false });
    return new Promise((resolve, reject) => {
      this.#readers.push({ resolve, reject });
      if (this.#outcome || this.#isDiscarding) this.#endReading();
    });
  }

  /** End the loop before the request has ended, or after it. */
  async #leave(): Promise<IteratorResult<TEvent, void>> {
    if (!this.#outcome) this.cancel();
    this.#isDiscarding = true;
    this.#endReading();
    return END;
  }

  /** End the loop for those that wait for an event. Only the first one gets the request's error. */
  #endReading(): void {
    let outcome = this.#isDiscarding ? undefined : this.#outcome;
    this.#discard();
    for (const { resolve, reject } of this.#readers.splice(0)) {
      if (outcome && "error" in outcome) reject(outcome.error);
      else resolve(END);
      outcome = undefined;
    }
  }

  #receive(raw: RawEvent): void {
    if (this.#outcome) return; // given up: its terminal is still to come
    const event = this.accept(raw);
    if (event === undefined || this.#isDiscarding) return;
    const reader = this.#readers.shift();
    if (reader) {
      reader.resolve({ value: event, done: false });
      return;
    }
    const last = this.#events.at(-1);
    if (!last || this.#events.length < MERGE_FROM || !this.merge(last, event)) this.#events.push(event);
  }

  #settle(outcome: Outcome): void {
    if (this.#outcome) return;
    this.#outcome = outcome;
    for (const cleanup of this.#cleanups) cleanup();
    for (const resolve of this.#waiters.splice(0)) resolve(outcome);
    if (this.#readers.length) this.#endReading();
  }

  #giveUp(error: unknown): void {
    this.cancel();
    this.#settle({ error });
  }

  #limit({ signal, timeoutMs }: RequestOptions): void {
    if (signal) this.#cleanups.push(onAbort(signal, () => this.#giveUp(signal.reason)));
    if (timeoutMs !== undefined) {
      const error: LmwireError = new RequestTimeout(`the request has not ended within ${timeoutMs} ms`);
      const timer = setTimeout(() => this.#giveUp(error), timeoutMs);
      this.#cleanups.push(() => clearTimeout(timer));
    }
  }

  #discard(): void {
    this.#isDiscarding = true;
    this.#events = [];
  }
}
