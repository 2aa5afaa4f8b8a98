import {
  type LanguageModelV4CallOptions,
  type LanguageModelV4FunctionTool,
  type LanguageModelV4ToolChoice,
  type SharedV4ProviderOptions,
  type SharedV4Warning,
  UnsupportedFunctionalityError,
} from "@ai-sdk/provider";
import type { ChatFields } from "lmwire";
import { headerWarnings, unsupported } from "./warnings.js";

/** Return the settings of a call as fields of the protocol. `providerOptions.lmwire` has further fields. */
export function toChatFields(options: LanguageModelV4CallOptions): { fields: ChatFields; warnings: SharedV4Warning[] } {
  const { responseFormat: format, providerOptions } = options;
  const functions = (options.tools ?? []).filter((tool) => tool.type === "function");
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
    ...toReasoning(options.reasoning),
    ...providerOptions?.lmwire,
  };
  if (Number(providerOptions?.lmwire?.n ?? 1) !== 1) {
    throw new UnsupportedFunctionalityError({
      functionality: "providerOptions.lmwire.n",
      message: "providerOptions.lmwire.n: a call has one answer; leave n out, and make a call for each answer",
    });
  }
  const fields = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
  return { fields: fields as ChatFields, warnings: [...headerWarnings(options.headers), ...toWarnings(options)] };
}

function* toWarnings({ prompt, responseFormat, tools = [] }: LanguageModelV4CallOptions): Generator<SharedV4Warning> {
  if (responseFormat?.type === "json") {
    for (const setting of ["name", "description"] as const) {
      if (!responseFormat[setting]) continue;
      yield unsupported(`responseFormat.${setting}`, "the model does not see it; put it into the prompt");
    }
  }
  for (const tool of tools) {
    if (tool.type === "provider") {
      yield unsupported(`the tool ${tool.id}`, "another provider runs it; define a tool with an execute function");
    } else if (tool.inputExamples?.length) {
      const fix = "put them into its description, as addToolInputExamplesMiddleware of `ai` does";
      yield unsupported(`inputExamples of the tool ${tool.name}`, fix);
    }
  }
  const carriers: Array<{ providerOptions?: SharedV4ProviderOptions }> = [...prompt];
  for (const { content } of prompt) if (typeof content !== "string") carriers.push(...content);
  carriers.push(...tools.filter((tool) => tool.type === "function"));
  if (carriers.some(({ providerOptions }) => providerOptions?.lmwire)) {
    yield unsupported("providerOptions.lmwire of a message, a part or a tool", "set them for the whole call");
  }
}

function toReasoning(effort: LanguageModelV4CallOptions["reasoning"] = "provider-default") {
  if (effort === "provider-default") return {};
  return effort === "none" ? { reasoning: "off" } : { reasoning: "on", reasoning_effort: effort };
}

function toFormat(schema: unknown): ChatFields["format"] {
  return schema === undefined
    ? { type: "json_object" }
    : { type: "json_schema", schema: schema as Record<string, unknown> };
}

function toTool({ name, description, inputSchema: parameters, strict }: LanguageModelV4FunctionTool) {
  return { function: { name, parameters, ...(description && { description }), ...(strict && { strict }) } };
}

function toToolChoice(choice: LanguageModelV4ToolChoice): "auto" | "none" | "required" | { name: string } {
  return choice.type === "tool" ? { name: choice.toolName } : choice.type;
}
