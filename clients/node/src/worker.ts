import { AnswerStream } from "./answers.js";
import { Connection, type ShutdownTimeouts } from "./connection.js";
import { type LmwireError, StartFailed } from "./errors.js";
import { findWorker } from "./find-worker.js";
import type * as wire from "./generated/types.js";
import type { RequestOptions, RequestStream } from "./request-stream.js";
import {
  DoneStream,
  type Embeddings,
  EmbedStream,
  SpeechStream,
  TokenizeStream,
  type Tokens,
  TranscriptStream,
} from "./results.js";
import { VERSION } from "./version.js";

/** The fields of a command without the envelope. */
type Fields<TCommand, TGiven extends string = never> = Omit<TCommand, "id" | "cmd" | TGiven>;
export type LoadFields = Fields<wire.LoadCommand, "path">;
export type ChatFields = Fields<wire.ChatCommand, "messages">;
export type GenerateFields = Fields<wire.GenerateCommand, "prompt">;
export type TokenizeFields = Fields<wire.TokenizeCommand, "prompt" | "messages">;
export type EmbedFields = Fields<wire.EmbedCommand, "input">;
export type SpeakFields = Fields<wire.SpeakCommand, "text">;
export type TranscribeFields = Fields<wire.TranscribeCommand, "audio">;

const START_TIMEOUT_MS = 30_000;
const SHUTDOWN_TIMEOUTS: ShutdownTimeouts = { quit: 5000, stdin: 2000, term: 3000, kill: 5000 };

/** How a worker is started. */
export interface StartOptions {
  /** The program and its arguments. By default the worker is looked for; see `findWorker`. */
  command?: readonly string[];
  /**
   * Whether uvx may download the worker from the package index, if no other is found. See `SearchOptions` for the risk.
   */
  uvx?: boolean;
  /** Further arguments of a worker that was found, such as `["--cache-dir", "./cache"]`. */
  args?: readonly string[];
  cwd?: string;
  env?: NodeJS.ProcessEnv;
  /** Longest wait for the worker's first reply, in milliseconds. */
  startTimeoutMs?: number;
  shutdownTimeouts?: Partial<ShutdownTimeouts>;
  /** Features that the program needs, such as `chat.tools`. A worker without them is refused. */
  features?: readonly string[];
  /** Called with each line that the worker writes to stderr. */
  onStderr?: (line: string) => void;
}

/** Settings of a load. */
export interface LoadOptions extends RequestOptions {
  onProgress?: (event: wire.ProgressEvent) => void;
}

/**
 * A worker process. It has at most one model and serves many requests at a time.
 *
 * A worker without requests does not keep the program alive. It ends when the program ends.
 *
 * @example
 * await using worker = await Worker.start();
 * await worker.load("builtin:tiny");
 * for await (const text of worker.chat("Who are you?").text()) process.stdout.write(text);
 */
export class Worker {
  readonly #connection: Connection;
  /** What the worker said about itself. */
  readonly hello: wire.HelloDone;

  private constructor(connection: Connection, hello: wire.HelloDone) {
    this.#connection = connection;
    this.hello = hello;
  }

  /**
   * Start a worker and greet it.
   *
   * @throws StartFailed if there is none, or it cannot be used. No process is left then.
   */
  static async start(options: StartOptions = {}): Promise<Worker> {
    const found = options.command ? undefined : findWorker(options.env, options);
    const { command = found!.command, args = [], features = [] } = options;
    const timeouts = { ...SHUTDOWN_TIMEOUTS, ...options.shutdownTimeouts };
    const connection = new Connection({ ...options, command: [...command, ...(found ? args : [])] }, timeouts);
    // A command of the caller's own can lead to another machine, where this process id means nothing.
    const hostPid = found && !found.isWholeCommand ? { host_pid: process.pid } : {};
    const hello = await connection.greet(
      { protocol: [1, 1], client: `lmwire-node/${VERSION}`, ...hostPid },
      options.startTimeoutMs ?? found?.startTimeoutMs ?? START_TIMEOUT_MS,
    );
    const missing = features.filter((feature) => !hello.features.includes(feature));
    if (missing.length) {
      await connection.close();
      throw new StartFailed(`${hello.worker} lacks ${missing.join(", ")}: install a newer lmwire`);
    }
    return new Worker(connection, hello);
  }

  /** The process id. */
  get pid(): number {
    return this.#connection.pid!;
  }

  /** The last lines that the worker wrote to stderr. */
  get stderr(): readonly string[] {
    return this.#connection.stderr;
  }

  /** Why the worker is gone; undefined while it lives. */
  get lost(): LmwireError | undefined {
    return this.#connection.lost;
  }

  /** The number of requests that have not ended. */
  get inFlight(): number {
    return this.#connection.inFlight;
  }

  /**
   * Load a model in place of the present one.
   *
   * @param path - A folder, a hub id (`owner/name`) or an alias.
   */
  async load(path: string, fields: LoadFields = {}, options: LoadOptions = {}): Promise<wire.ModelDone> {
    const stream = new DoneStream<wire.ModelDone>(this.#connection, "load", { path, ...fields }, options);
    if (options.onProgress) for await (const event of stream) options.onProgress(event);
    return stream.result();
  }

  /** Drop the model, and free its memory. */
  unload(options?: RequestOptions): Promise<wire.UnloadDone> {
    return this.#ask("unload", {}, options);
  }

  /** Answer a conversation. A string is one message of the user. */
  chat(messages: string | wire.Message[], fields: ChatFields = {}, options?: RequestOptions): AnswerStream {
    const conversation = typeof messages === "string" ? [{ role: "user", content: messages }] : messages;
    return new AnswerStream(this.#connection, "chat", { messages: conversation, ...fields }, options);
  }

  /** Continue a prompt, without a chat template. */
  generate(prompt: string | number[], fields: GenerateFields = {}, options?: RequestOptions): AnswerStream {
    return new AnswerStream(this.#connection, "generate", { prompt, ...fields }, options);
  }

  /** Turn a prompt or a conversation into tokens. */
  tokenize(prompt: string | wire.Message[], fields: TokenizeFields = {}, options?: RequestOptions): Promise<Tokens> {
    const given = typeof prompt === "string" ? { prompt } : { messages: prompt };
    return new TokenizeStream(this.#connection, "tokenize", { ...given, ...fields }, options).result();
  }

  /** Turn texts and images into vectors. */
  embed(input: wire.EmbedCommand["input"], fields: EmbedFields = {}, options?: RequestOptions): Promise<Embeddings> {
    return new EmbedStream(this.#connection, "embed", { input, ...fields }, options).result();
  }

  /** Turn a recording into text. */
  transcribe(audio: wire.Media, fields: TranscribeFields = {}, options?: RequestOptions): TranscriptStream {
    return new TranscriptStream(this.#connection, "transcribe", { audio, ...fields }, options);
  }

  /** Speak a text. */
  speak(text: string, fields: SpeakFields = {}, options?: RequestOptions): SpeechStream {
    return new SpeechStream(this.#connection, "speak", { text, ...fields }, options);
  }

  /** Clear the cache of prompts and answers. */
  clearCache(options?: RequestOptions): Promise<wire.CacheDone> {
    return this.#ask("cache", { action: "clear" }, options);
  }

  /** Describe the loaded model. */
  info(options?: RequestOptions): Promise<wire.ModelDone> {
    return this.#ask("info", {}, options);
  }

  /** Ask whether the worker makes progress. */
  ping(options?: RequestOptions): Promise<wire.PingDone> {
    return this.#ask("ping", {}, options);
  }

  /** Read the worker's counters. */
  stats(options?: RequestOptions): Promise<wire.StatsDone> {
    return this.#ask("stats", {}, options);
  }

  /** Cancel all requests. Each still gets its own end. */
  async cancelAll(): Promise<void> {
    await this.#ask("cancel", { all: true });
  }

  /**
   * Send any command as it is.
   *
   * @param command - A line of the protocol, without `id`.
   */
  request(
    command: { cmd: string } & Record<string, unknown>,
    options?: RequestOptions,
  ): RequestStream<unknown, unknown> {
    const { cmd, ...fields } = command;
    const streams = { chat: AnswerStream, generate: AnswerStream, tokenize: TokenizeStream, embed: EmbedStream };
    if (cmd === "speak") return new SpeechStream(this.#connection, cmd, fields, options);
    if (cmd === "transcribe") return new TranscriptStream(this.#connection, cmd, fields, options);
    const Stream = streams[cmd as keyof typeof streams] ?? DoneStream;
    return new Stream(this.#connection, cmd, fields, options);
  }

  /**
   * End the worker, and return when its process is gone. Requests are cancelled.
   *
   * @param options - With `drain`, requests end by themselves first.
   */
  close({ drain = false }: { drain?: boolean } = {}): Promise<void> {
    return this.#connection.close(drain);
  }

  /** Kill the worker, whose requests then fail with the error. */
  kill(error: LmwireError): Promise<void> {
    return this.#connection.kill(error);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #ask<TDone>(command: string, fields: object, options?: RequestOptions): Promise<TDone> {
    return new DoneStream<TDone>(this.#connection, command, fields, options).result();
  }
}
