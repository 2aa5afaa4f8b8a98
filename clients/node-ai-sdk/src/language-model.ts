import type {
  JSONObject,
  LanguageModelV4,
  LanguageModelV4CallOptions,
  LanguageModelV4Content,
  LanguageModelV4FinishReason,
  LanguageModelV4GenerateResult,
  LanguageModelV4StreamPart,
  LanguageModelV4StreamResult,
  LanguageModelV4Usage,
  SharedV4ProviderMetadata,
} from "@ai-sdk/provider";
import type { Answer, AnswerStream } from "lmwire";
import { toCallError } from "./call-error.js";
import { toChatFields } from "./chat-fields.js";
import { hasMedia, toMessages } from "./messages.js";
import type { Ask } from "./provider.js";
import { StreamParts } from "./stream-parts.js";

/** The AI SDK's word for each reason why an answer ended. An interrupted answer may be incomplete. */
const FINISH_REASONS: Partial<Record<string, LanguageModelV4FinishReason["unified"]>> = {
  stop: "stop",
  length: "length",
  tool_calls: "tool-calls",
  cancelled: "interrupted",
  timeout: "interrupted",
  capacity: "interrupted",
};

/** A model that answers conversations. */
export class LmwireLanguageModel implements LanguageModelV4 {
  readonly specificationVersion = "v4";
  readonly provider = "lmwire";
  /** None: the AI SDK downloads the files of addresses, since workers open no connections by default. */
  readonly supportedUrls = {};
  readonly modelId: string;
  readonly #ask: Ask;

  constructor(modelId: string, ask: Ask) {
    this.modelId = modelId;
    this.#ask = ask;
  }

  async doGenerate(options: LanguageModelV4CallOptions): Promise<LanguageModelV4GenerateResult> {
    const { warnings, response, start } = this.#prepare(options);
    const answer = await start((stream) => stream.result());
    return { content: toContent(answer), ...toEnd(answer), response, warnings };
  }

  async doStream(options: LanguageModelV4CallOptions): Promise<LanguageModelV4StreamResult> {
    const { warnings, response, start } = this.#prepare(options);
    // A refusal comes before the first event. As an error of this call, it can be tried again.
    const { stream, events, first } = await start(async (stream) => {
      const events = stream[Symbol.asyncIterator]();
      return { stream, events, first: await events.next() };
    });
    const parts = new StreamParts();
    async function* generate(): AsyncGenerator<LanguageModelV4StreamPart> {
      yield { type: "stream-start", warnings };
      yield { type: "response-metadata", ...response };
      try {
        for (let next = first; !next.done; next = await events.next()) {
          if (options.includeRawChunks) yield { type: "raw", rawValue: next.value };
          yield* parts.add(next.value);
        }
        const answer = await stream.result();
        if (options.includeRawChunks) yield { type: "raw", rawValue: answer.done };
        yield* parts.end();
        yield { type: "finish", ...toEnd(answer) };
      } catch (error) {
        yield { type: "error", error: toCallError(error) };
      }
    }
    return { stream: toReadable(generate(), async () => void (await events.return?.())) };
  }

  #prepare(options: LanguageModelV4CallOptions) {
    const { messages, warnings: omissions } = toMessages(options.prompt);
    const { fields, warnings } = toChatFields(options);
    // Otherwise a model that does not see would answer without the image.
    if (messages.some(hasMedia)) fields.strict_media ??= true;
    return {
      warnings: [...warnings, ...omissions],
      response: { modelId: this.modelId, timestamp: new Date() },
      start: <T>(read: (stream: AnswerStream) => Promise<T>) =>
        this.#ask(options, (worker, limits) => read(worker.chat(messages, fields, limits))),
    };
  }
}

/** Return a stream of the items. `cancel` is called if its reader ends it, whether it has read an item or not. */
function toReadable<T>(items: AsyncGenerator<T>, cancel: () => Promise<void>): ReadableStream<T> {
  const pull = async (controller: ReadableStreamDefaultController<T>) => {
    const { done, value } = await items.next();
    if (done) controller.close();
    else controller.enqueue(value);
  };
  return new ReadableStream({ pull, cancel }, { highWaterMark: 0 });
}

function toContent(answer: Answer): LanguageModelV4Content[] {
  return [
    ...(answer.reasoning ? [{ type: "reasoning" as const, text: answer.reasoning }] : []),
    ...(answer.text ? [{ type: "text" as const, text: answer.text }] : []),
    ...answer.tool_calls.map((call) => ({
      type: "tool-call" as const,
      toolCallId: call.id,
      toolName: call.name,
      input: call.arguments,
    })),
  ];
}

/** Return what is known at the end of an answer. */
function toEnd({ done, logprobs }: Answer): {
  finishReason: LanguageModelV4FinishReason;
  usage: LanguageModelV4Usage;
  providerMetadata: SharedV4ProviderMetadata;
} {
  const { finish_reason: raw, usage, seed, timings, stop } = done;
  const reasoning = usage.reasoning_tokens ?? 0;
  return {
    finishReason: { unified: FINISH_REASONS[raw] ?? "other", raw },
    usage: {
      inputTokens: {
        total: usage.prompt_tokens,
        noCache: usage.prompt_tokens - usage.cached_tokens,
        cacheRead: usage.cached_tokens,
        cacheWrite: undefined,
      },
      outputTokens: { total: usage.completion_tokens, text: usage.completion_tokens - reasoning, reasoning },
      raw: { ...usage },
    },
    providerMetadata: {
      lmwire: {
        seed,
        timings: { ...timings },
        ...(stop !== undefined && { stop }),
        ...(logprobs.length && { logprobs: logprobs as unknown as JSONObject[] }),
      },
    },
  };
}
