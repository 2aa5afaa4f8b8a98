import { ReadableStream } from "node:stream/web";
import type {
  LanguageModelV3,
  LanguageModelV3CallOptions,
  LanguageModelV3Content,
  LanguageModelV3FinishReason,
  LanguageModelV3GenerateResult,
  LanguageModelV3StreamPart,
  LanguageModelV3StreamResult,
  LanguageModelV3ToolChoice,
  LanguageModelV3Usage,
  SharedV3Warning,
} from "@ai-sdk/provider";
import type { Answer, AnswerStream, ChatFields } from "lmwire";
import { toCallError } from "./call-error.js";
import { toMessages } from "./prompt.js";
import type { WorkerOf } from "./provider.js";
import { StreamParts } from "./stream-parts.js";

/** A model that answers conversations. */
export class LmwireLanguageModel implements LanguageModelV3 {
  readonly specificationVersion = "v3";
  readonly provider = "lmwire";
  /** None: the AI SDK downloads the files of addresses, since workers open no connections by default. */
  readonly supportedUrls = {};
  readonly modelId: string;
  readonly #worker: WorkerOf;

  constructor(modelId: string, worker: WorkerOf) {
    this.modelId = modelId;
    this.#worker = worker;
  }

  async doGenerate(options: LanguageModelV3CallOptions): Promise<LanguageModelV3GenerateResult> {
    const { stream, warnings } = await this.#chat(options);
    try {
      const answer = await stream.result();
      return {
        content: toContent(answer),
        finishReason: toFinishReason(answer),
        usage: toUsage(answer),
        response: { modelId: this.modelId, timestamp: new Date() },
        warnings,
      };
    } catch (error) {
      throw toCallError(error);
    }
  }

  async doStream(options: LanguageModelV3CallOptions): Promise<LanguageModelV3StreamResult> {
    const { stream, warnings } = await this.#chat(options);
    const events = stream[Symbol.asyncIterator]();
    // A refusal comes before the first event. As an error of this call, it can be tried again.
    const first = await events.next().catch((error) => {
      throw toCallError(error);
    });
    const parts = new StreamParts();
    const metadata = { type: "response-metadata" as const, modelId: this.modelId, timestamp: new Date() };
    async function* generate(): AsyncGenerator<LanguageModelV3StreamPart> {
      yield { type: "stream-start", warnings };
      yield metadata;
      try {
        for (let next = first; !next.done; next = await events.next()) yield* parts.add(next.value);
        const answer = await stream.result();
        yield* parts.end();
        yield { type: "finish", finishReason: toFinishReason(answer), usage: toUsage(answer) };
      } catch (error) {
        yield { type: "error", error: toCallError(error) };
      } finally {
        await events.return(undefined);
      }
    }
    return { stream: ReadableStream.from(generate()) as LanguageModelV3StreamResult["stream"] };
  }

  async #chat(options: LanguageModelV3CallOptions): Promise<{ stream: AnswerStream; warnings: SharedV3Warning[] }> {
    const { fields, warnings } = toFields(options);
    const messages = toMessages(options.prompt);
    try {
      const worker = await this.#worker();
      return {
        stream: worker.chat(messages, fields, options.abortSignal ? { signal: options.abortSignal } : {}),
        warnings,
      };
    } catch (error) {
      throw toCallError(error);
    }
  }
}

/** Return the settings of a call as fields of the protocol. `providerOptions.lmwire` has further fields. */
function toFields(options: LanguageModelV3CallOptions): { fields: ChatFields; warnings: SharedV3Warning[] } {
  const { responseFormat: format } = options;
  const tools = options.tools ?? [];
  const functions = tools.filter((tool) => tool.type === "function");
  const given = {
    max_tokens: options.maxOutputTokens,
    temperature: options.temperature,
    top_p: options.topP,
    top_k: options.topK,
    presence_penalty: options.presencePenalty,
    frequency_penalty: options.frequencyPenalty,
    seed: options.seed,
    stop: options.stopSequences?.length ? options.stopSequences : undefined,
    format: format?.type === "json" ? toFormat(format.schema) : undefined,
    tools: functions.length ? functions.map(toTool) : undefined,
    tool_choice: functions.length && options.toolChoice ? toToolChoice(options.toolChoice) : undefined,
    ...options.providerOptions?.lmwire,
  };
  const fields = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
  const warnings = tools.flatMap((tool): SharedV3Warning[] =>
    tool.type === "provider" ? [{ type: "unsupported", feature: `the tool ${tool.id}` }] : [],
  );
  return { fields: fields as ChatFields, warnings };
}

function toFormat(schema: unknown): ChatFields["format"] {
  return schema === undefined
    ? { type: "json_object" }
    : { type: "json_schema", schema: schema as Record<string, unknown> };
}

function toTool(tool: { name: string; description?: string; inputSchema: unknown; strict?: boolean }) {
  const { name, description, inputSchema: parameters, strict } = tool;
  return { function: { name, parameters, ...(description && { description }), ...(strict && { strict }) } };
}

function toToolChoice(choice: LanguageModelV3ToolChoice): "auto" | "none" | "required" | { name: string } {
  return choice.type === "tool" ? { name: choice.toolName } : choice.type;
}

function toContent(answer: Answer): LanguageModelV3Content[] {
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

function toFinishReason({ finish_reason: raw }: Answer): LanguageModelV3FinishReason {
  const unified = ({ stop: "stop", length: "length", tool_calls: "tool-calls" } as const)[raw as "stop"] ?? "other";
  return { unified, raw };
}

function toUsage({ usage }: Answer): LanguageModelV3Usage {
  const reasoning = usage.reasoning_tokens ?? 0;
  return {
    inputTokens: {
      total: usage.prompt_tokens,
      noCache: usage.prompt_tokens - usage.cached_tokens,
      cacheRead: usage.cached_tokens,
      cacheWrite: undefined,
    },
    outputTokens: { total: usage.completion_tokens, text: usage.completion_tokens - reasoning, reasoning },
  };
}
