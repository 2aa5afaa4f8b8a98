import type { Connection } from "./connection.js";
import { LmwireError } from "./errors.js";
import { isObject, type RawEvent } from "./event-check.js";
import { type FinishReason, knownFinishReason } from "./finish-reason.js";
import type {
  Logprob,
  ProgressEvent,
  ResultDone,
  Timings,
  TokenEvent,
  ToolCallEvent,
  Usage,
} from "./generated/types.js";
import { type RequestOptions, RequestStream } from "./request-stream.js";

/** An event of an answer: text, a part of a tool call, or progress of the prompt. */
export type AnswerEvent = TokenEvent | ToolCallEvent | ProgressEvent;

/** A whole tool call. */
export interface ToolCall {
  /** The `tool_call_id` of the message with its result. */
  id: string;
  name: string;
  /** The arguments as JSON text. */
  arguments: string;
}

/** One answer, whole or as far as it came. */
export interface Choice {
  /** The text of the answer, without reasoning. */
  text: string;
  /** What a reasoning model wrote before its answer. */
  reasoning: string;
  tool_calls: ToolCall[];
  /** All tokens, those of reasoning, calls and markers included. */
  token_ids: number[];
  /** Empty unless the request asked for them. */
  logprobs: Logprob[];
  finish_reason: FinishReason;
  /** The stop string that ended the answer. */
  stop: string | undefined;
}

/** The result of `chat` and `generate`: the first answer, and all of them in `choices`. */
export interface Answer extends Choice {
  /** One for each of `n`. */
  choices: Choice[];
  /** The tokens of the prompt, if the request asked for them. */
  prompt_logprobs: Logprob[];
  seed: number;
  usage: Usage;
  timings: Timings;
  /** The worker's last event, for fields that are newer than this package. */
  done: ResultDone;
}

/** Number of tokens that are joined at once. */
const JOINED_TOKENS = 256;

/** Joins tokens. Each token that is added to a text by itself would remain in memory, as two objects. */
class TextBuilder {
  #text = "";
  #tokens: string[] = [];

  add(token: string): void {
    if (this.#tokens.push(token) === JOINED_TOKENS) this.join();
  }

  join(): string {
    this.#text += this.#tokens.join("");
    this.#tokens = [];
    return this.#text;
  }
}

/** Collects the events of one answer. */
class ChoiceBuilder {
  readonly #text = new TextBuilder();
  readonly #reasoning = new TextBuilder();
  readonly #toolCalls: ToolCall[] = [];
  readonly #tokenIds: number[] = [];
  readonly #logprobs: Logprob[] = [];
  readonly #calls = new Map<number, ToolCall>();

  addToken(event: TokenEvent): void {
    if (event.channel === "reasoning") this.#reasoning.add(event.token);
    else if ((event.channel ?? "content") === "content") this.#text.add(event.token);
    for (const id of event.token_ids) this.#tokenIds.push(id);
    for (const logprob of event.logprobs ?? []) this.#logprobs.push(logprob);
  }

  addCall(event: ToolCallEvent): void {
    let call = this.#calls.get(event.index);
    if (!call) {
      call = { id: event.call_id ?? "", name: event.name ?? "", arguments: "" };
      this.#calls.set(event.index, call);
    }
    call.arguments += event.arguments ?? "";
    if (event.complete) this.#toolCalls.push(call);
  }

  /** Return the answer with its end. */
  finish({ finish_reason, stop }: Pick<ResultDone, "finish_reason" | "stop">): Choice {
    for (const call of this.#toolCalls) refuseOther(call);
    return {
      text: this.#text.join(),
      reasoning: this.#reasoning.join(),
      tool_calls: this.#toolCalls,
      token_ids: this.#tokenIds,
      logprobs: this.#logprobs,
      finish_reason: knownFinishReason(finish_reason),
      stop,
    };
  }
}

/** Throw if the arguments of a whole call are not a JSON object, which no worker sends. */
function refuseOther(call: ToolCall): void {
  try {
    if (isObject(JSON.parse(call.arguments))) return;
  } catch {}
  const shown = JSON.stringify(call.arguments.slice(0, 200));
  throw new LmwireError(`the worker's call of ${call.name} has arguments that are not a JSON object: ${shown}`);
}

/** An answer as it is generated. */
export class AnswerStream extends RequestStream<AnswerEvent, Answer> {
  readonly #builders: ChoiceBuilder[] = [];
  readonly #promptLogprobs: Logprob[] = [];

  /** @internal */
  constructor(connection: Connection, command: string, fields: object, options?: RequestOptions) {
    super(connection, command, fields, options);
  }

  protected override accept(raw: RawEvent): AnswerEvent | undefined {
    const event = raw as unknown as AnswerEvent;
    if (event.event === "token") {
      this.#builder(event.choice).addToken(event);
      for (const logprob of event.prompt_logprobs ?? []) this.#promptLogprobs.push(logprob);
    } else if (event.event === "tool_call") this.#builder(event.choice).addCall(event);
    return event;
  }

  protected override merge(waiting: AnswerEvent, event: AnswerEvent): boolean {
    if (waiting.event !== "token" || event.event !== "token") return false;
    if (waiting.prompt_logprobs || event.prompt_logprobs) return false;
    if (waiting.choice !== event.choice || waiting.channel !== event.channel || waiting.call !== event.call)
      return false;
    waiting.token += event.token;
    waiting.token_ids.push(...event.token_ids);
    if (event.logprobs) waiting.logprobs = [...(waiting.logprobs ?? []), ...event.logprobs];
    return true;
  }

  protected override finish(raw: RawEvent): Answer {
    const done = raw as unknown as ResultDone;
    const ends = done.choices ?? [done];
    const choices = ends.map((end, index) => this.#builder(index).finish(end));
    const { seed, usage, timings } = done;
    return { ...choices[0]!, choices, prompt_logprobs: this.#promptLogprobs, seed, usage, timings, done };
  }

  /** Yield only the text of the first answer, without reasoning. */
  async *text(): AsyncGenerator<string, void, undefined> {
    for await (const event of this) {
      if (event.event === "token" && !event.choice && (event.channel ?? "content") === "content" && event.token) {
        yield event.token;
      }
    }
  }

  #builder(choice = 0): ChoiceBuilder {
    let builder = this.#builders[choice];
    if (!builder) {
      builder = new ChoiceBuilder();
      this.#builders[choice] = builder;
    }
    return builder;
  }
}
