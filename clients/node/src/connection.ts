import { Child, type SpawnOptions, within } from "./child.js";
import {
  InvalidCommand,
  type LmwireError,
  RequestFailed,
  StartFailed,
  UnsupportedByWorker,
  WorkerLost,
} from "./errors.js";
import { dropNulls, isKnown, isObject, isWellFormed, type RawEvent } from "./event-check.js";
import { missingFeatures } from "./feature-check.js";
import type { ErrorEvent, HelloDone } from "./generated/types.js";
import { type Line, LineSplitter } from "./line-splitter.js";

/** Longest line that a worker takes, in bytes. */
const LINE_IN_BYTES = 32 * 1024 * 1024;
/** Longest line from a worker, in bytes. */
const LINE_BYTES = 1024 * 1024;
/** Lines before the reply to `hello` that are not JSON objects, such as a login banner, in bytes. */
const BANNER_BYTES = 64 * 1024;
/**
 * Longest wait for the process after the end of stdout, before its requests are lost and it is killed, in milliseconds.
 * A process that ends can take a while after it has closed its pipes, such as to free a GPU.
 */
const AFTER_OUTPUT_MS = 5000;
const BLANK = /^[ \t\r]*$/;

/** Longest waits of the steps of a shutdown, in milliseconds. */
export interface ShutdownTimeouts {
  /** After `quit`. A close with `drain` waits without limit. */
  quit: number;
  /** After stdin was closed. */
  stdin: number;
  /** After SIGTERM. */
  term: number;
  /** After SIGKILL. */
  kill: number;
}

/** What receives the events of a request. One of the last two methods is called, once. */
export interface Receiver {
  /** The command's name. */
  readonly command: string;
  event(event: RawEvent): void;
  done(event: RawEvent): void;
  failed(error: LmwireError): void;
}

/** A worker's process, its requests in flight, and the lines between them. */
export class Connection {
  readonly #child: Child;
  readonly #splitter = new LineSplitter(LINE_BYTES);
  readonly #requests = new Map<string, Receiver>();
  readonly #timeouts: ShutdownTimeouts;
  readonly #ended: Promise<void>;
  #features: ReadonlySet<string> = new Set();
  #nextId = 1;
  #isGreeted = false;
  #bannerBytes = 0;
  #violation: string | undefined;
  #closing: Promise<void> | undefined;
  /** Why the worker is gone; undefined while it lives. */
  lost: LmwireError | undefined;

  constructor(options: SpawnOptions, timeouts: ShutdownTimeouts) {
    this.#timeouts = timeouts;
    this.#child = new Child(options, (chunk) => this.#read(chunk));
    this.#ended = this.#watch();
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  get stderr(): readonly string[] {
    return this.#child.stderr;
  }

  /** The number of requests in flight. */
  get inFlight(): number {
    return this.#requests.size;
  }

  /** Resolves when the worker is gone and all requests have ended. */
  get ended(): Promise<void> {
    return this.#ended;
  }

  /**
   * Greet the worker.
   *
   * @param fields - The fields of `hello`.
   * @param timeoutMs - Longest wait for the reply.
   * @throws StartFailed if the worker cannot be used. Its process is gone then.
   */
  async greet(fields: object, timeoutMs: number): Promise<HelloDone> {
    const reply = new Promise<HelloDone>((resolve, reject) => {
      this.send(fields, {
        command: "hello",
        event: () => {},
        done: (event) => resolve(event as unknown as HelloDone),
        failed: reject,
      });
    });
    reply.catch(() => {}); // the race below reports it, unless the time is over
    try {
      if (!(await within(reply, timeoutMs)))
        throw new StartFailed(`the worker has not answered within ${timeoutMs} ms`);
      const hello = await reply;
      this.#features = new Set(hello.features);
      return hello;
    } catch (error) {
      await this.kill(new StartFailed(this.#describe("the worker was ended")));
      if (error instanceof StartFailed) throw error;
      const reason = error instanceof Error ? error.message : String(error);
      throw new StartFailed(`the worker cannot be used: ${reason}`, { cause: error });
    }
  }

  /**
   * Write a command and return its id. If it cannot be sent, its receiver gets the error and the id is undefined.
   *
   * @param fields - The command's fields, without `id` and `cmd`.
   * @param receiver - What receives its events.
   */
  send(fields: object, receiver: Receiver): string | undefined {
    const id = String(this.#nextId++);
    try {
      this.#refuse(receiver.command, fields);
      const line = toLine({ id, cmd: receiver.command, ...fields });
      refuseTooLong(line);
      this.#requests.set(id, receiver);
      this.#child.hold(true);
      this.#child.write(line);
      return id;
    } catch (error) {
      queueMicrotask(() => receiver.failed(error as LmwireError));
      return undefined;
    }
  }

  /** Cancel a request. It still gets its own end. */
  cancel(id: string): void {
    if (this.#requests.has(id)) this.send({ target: id }, new Ignored("cancel"));
  }

  /**
   * End the worker in steps, and return when its process is gone.
   *
   * @param drain - Whether requests in flight may end by themselves.
   */
  close(drain = false): Promise<void> {
    this.#closing ??= this.#shutDown(drain);
    return this.#closing;
  }

  /** Kill the worker. Its requests fail with the error. */
  async kill(error: LmwireError): Promise<void> {
    this.lost ??= error;
    this.#child.hold(true); // without anything else to do, the program would end here
    this.#child.signal("SIGKILL");
    await this.#ended;
  }

  async #shutDown(drain: boolean): Promise<void> {
    const { quit, stdin, term, kill } = this.#timeouts;
    const child = this.#child;
    child.hold(true);
    if (!child.hasExited) this.send(drain ? { drain } : {}, new Ignored("quit"));
    const exitsWithin = (limit: number) => within(child.exited, limit);
    if (!(drain ? await child.exited.then(() => true) : await exitsWithin(quit))) {
      child.closeStdin();
      if (!(await exitsWithin(stdin))) {
        child.signal("SIGTERM");
        if (!(await exitsWithin(term))) child.signal("SIGKILL");
      }
    }
    await within(this.#ended, kill);
  }

  /** Wait for the end of the worker, and fail what is in flight. */
  async #watch(): Promise<void> {
    await this.#child.outputEnded;
    const hasExited = await within(this.#child.exited, AFTER_OUTPUT_MS); // so that the error names the exit code
    this.#lose();
    if (!hasExited) this.#child.signal("SIGKILL");
    await this.#child.exited;
  }

  #lose(): void {
    this.lost ??= new WorkerLost(this.#describe("the worker is gone"));
    const requests = [...this.#requests.values()];
    this.#requests.clear();
    this.#child.hold(false);
    for (const receiver of requests) receiver.failed(this.lost);
  }

  #describe(what: string): string {
    const cause = this.#violation ?? this.#child.startError?.message ?? this.#child.describeExit();
    const last = this.#child.stderr.at(-1);
    return `${what}: ${cause}${last ? `; its last line on stderr: ${last}` : ""}`;
  }

  /** Throw if the worker cannot take a command. */
  #refuse(command: string, fields: object): void {
    if (this.lost && command !== "quit") throw this.lost;
    if (this.#closing && command !== "quit" && command !== "cancel") throw new WorkerLost("the worker has been closed");
    const missing = missingFeatures(command, fields, this.#features);
    if (missing.length) throw new UnsupportedByWorker(command, missing);
  }

  #read(chunk: Buffer): void {
    if (this.#violation) return;
    for (const line of this.#splitter.push(chunk)) {
      this.#readLine(line);
      if (this.#violation) return;
    }
    if (this.#splitter.isOverflown) this.#end("it wrote a line of over 1 MiB");
  }

  #readLine(line: Line): void {
    if (line !== undefined && !line.startsWith("{") && BLANK.test(line)) return;
    const event = line === undefined ? undefined : parse(line);
    if (event === undefined) this.#skip(line);
    else if (typeof event.event === "string" && isKnown(event.event)) this.#deliver(event as RawEvent);
  }

  /** Skip a line of a login banner. Later, such a line means that something has broken the stream. */
  #skip(line: Line): void {
    this.#bannerBytes += Buffer.byteLength(line ?? "") + 1;
    if (this.#isGreeted) this.#end(`it wrote a line that is not a JSON object: ${line?.slice(0, 100) ?? "not UTF-8"}`);
    else if (this.#bannerBytes > BANNER_BYTES) this.#end("it wrote over 64 KiB before its reply to hello");
  }

  #deliver(event: RawEvent): void {
    const { id } = event;
    if (event.event === "error" && id === undefined) return; // about a line that is not a request
    const receiver = typeof id === "string" ? this.#requests.get(id) : undefined;
    if (typeof id !== "string" || (receiver && !isWellFormed(event, receiver.command))) {
      if (event.event !== "progress") this.#end(`it wrote a malformed event: ${JSON.stringify(event).slice(0, 100)}`);
    } else if (receiver) this.#pass(id, event, receiver);
  }

  #pass(id: string, event: RawEvent, receiver: Receiver): void {
    if (event.event === "done" || event.event === "error") this.#finish(id, event, receiver);
    else {
      try {
        receiver.event(event);
      } catch (error) {
        this.#end(`it wrote an event that cannot be used: ${error}`);
      }
    }
  }

  #finish(id: string, event: RawEvent, receiver: Receiver): void {
    const isHello = receiver.command === "hello" && event.event === "done";
    if (isHello && event.protocol !== 1) {
      this.#end(`it speaks protocol ${event.protocol}, which was not offered`);
      return;
    }
    this.#isGreeted ||= isHello;
    this.#requests.delete(id);
    if (!this.#requests.size && !this.#closing) this.#child.hold(false);
    if (event.event === "done") receiver.done(event);
    else receiver.failed(new RequestFailed(event as unknown as ErrorEvent));
  }

  /** End a worker that has broken the protocol. Nothing after that line is believed. */
  #end(violation: string): void {
    this.#violation = `it broke the protocol: ${violation}`;
    this.#child.signal("SIGKILL");
    this.#lose();
  }
}

/** Receives the reply to a command whose outcome shows elsewhere. */
class Ignored implements Receiver {
  constructor(readonly command: string) {}
  event(): void {}
  done(): void {}
  failed(): void {}
}

function parse(line: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(line);
    if (!isObject(value)) return undefined;
    if (line.includes("null")) dropNulls(value);
    return value;
  } catch {
    return undefined;
  }
}

/** Throw if a line is longer than a worker takes. The worker's answer would be the same. */
function refuseTooLong(line: string): void {
  if (line.length <= LINE_IN_BYTES / 3) return; // a UTF-16 unit has at most three bytes
  const size = Buffer.byteLength(line) - 1;
  if (size <= LINE_IN_BYTES) return;
  const remedy = "name media by a path, or shorten the text";
  const error = `the request's line has ${size} bytes, more than ${LINE_IN_BYTES}; ${remedy}`;
  throw new RequestFailed({ event: "error", error, code: "line_too_long", retryable: false });
}

function toLine(command: object): string {
  const line = JSON.stringify(command, (name, value: unknown) => {
    if (typeof value !== "number" || Number.isFinite(value)) return value;
    throw new InvalidCommand(`${name}: ${value} is not a finite number`);
  });
  return `${line}\n`;
}
