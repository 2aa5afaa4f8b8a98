import {
  type LanguageModelV4FilePart,
  type LanguageModelV4Message,
  type LanguageModelV4Prompt,
  type LanguageModelV4ToolResultOutput,
  type LanguageModelV4ToolResultPart,
  type SharedV4Warning,
  UnsupportedFunctionalityError,
} from "@ai-sdk/provider";
import type { Message } from "lmwire";
import { unsupported } from "./warnings.js";

type Content = NonNullable<Message["content"]>;
type Part = Exclude<Content, string>[number];
type AssistantPart = Extract<LanguageModelV4Message, { role: "assistant" }>["content"][number];
type ResultPart = Extract<LanguageModelV4ToolResultOutput, { type: "content" }>["value"][number];

/** Return a prompt of the AI SDK as messages of the protocol, and warnings about what they leave out. */
export function toMessages(prompt: LanguageModelV4Prompt): { messages: Message[]; warnings: SharedV4Warning[] } {
  const warnings: SharedV4Warning[] = [];
  return { messages: prompt.flatMap((message) => toProtocol(message, warnings)), warnings };
}

/** Return whether a message has images or sounds. */
export function hasMedia({ content }: Message): boolean {
  return Array.isArray(content) && content.some(({ type }) => type !== "text");
}

function toProtocol(message: LanguageModelV4Message, warnings: SharedV4Warning[]): Message[] {
  if (message.role === "system") return [{ role: "system", content: message.content }];
  if (message.role === "user") return [{ role: "user", content: separateTexts(message.content.map(toPart)) }];
  if (message.role === "assistant") return toAssistantMessages(message.content, warnings);
  return message.content.flatMap((part) => {
    if (part.type === "tool-result") return [toToolMessage(part)];
    warnings.push(unsupported(part.type, "no tool runs in a worker, so the approval is left out"));
    return [];
  });
}

/** Return the messages of one turn. Results within it, those of another provider's own tools, divide it. */
function toAssistantMessages(content: AssistantPart[], warnings: SharedV4Warning[]): Message[] {
  const messages: Message[] = [];
  let parts: Part[] = [];
  let reasoning = "";
  let calls: NonNullable<Message["tool_calls"]> = [];
  const push = () => {
    if (!parts.length && !reasoning && !calls.length) return;
    messages.push({
      role: "assistant",
      ...((parts.length || !calls.length) && { content: joinTexts(parts) }),
      ...(reasoning && { reasoning }),
      ...(calls.length && { tool_calls: calls }),
    });
    parts = [];
    reasoning = "";
    calls = [];
  };
  for (const part of content) {
    if (part.type === "text") {
      if (part.text) parts.push({ type: "text", text: part.text });
    } else if (part.type === "file") parts.push(toFilePart(part));
    else if (part.type === "reasoning") reasoning += part.text;
    else if (part.type === "tool-call") {
      calls.push({ id: part.toolCallId, name: part.toolName, arguments: JSON.stringify(part.input ?? {}) });
    } else if (part.type === "tool-result") {
      push();
      messages.push(toToolMessage(part));
    } else {
      const name = part.type === "custom" ? `the part ${part.kind}` : part.type;
      warnings.push(
        unsupported(name, "models read text, images and sounds; it is left out of the assistant's message"),
      );
    }
  }
  push();
  return messages.length ? messages : [{ role: "assistant", content: "" }];
}

function toToolMessage({ toolCallId, toolName, output }: LanguageModelV4ToolResultPart): Message {
  return { role: "tool", tool_call_id: toolCallId, name: toolName, content: toContent(output) };
}

function toContent(output: LanguageModelV4ToolResultOutput): Content {
  switch (output.type) {
    case "text":
    case "error-text":
      return output.value;
    case "json":
    case "error-json":
      return JSON.stringify(output.value);
    case "execution-denied":
      return output.reason ?? "The call was denied.";
    case "content":
      return separateTexts(output.value.map(toPart));
  }
}

function toPart(part: ResultPart): Part {
  if (part.type === "text") return { type: "text", text: part.text };
  if (part.type === "file") return toFilePart(part);
  throw refuse(`${part.type} in the result of a tool`, "return text, JSON, images or sounds");
}

function toFilePart({ mediaType, data }: Pick<LanguageModelV4FilePart, "mediaType" | "data">): Part {
  if (data.type === "text") return { type: "text", text: data.text };
  if (data.type === "reference") throw refuse("a file of the data type reference", "give the file's data or URL");
  const type = mediaType.split("/")[0];
  if (type === "text" && data.type === "data") return { type: "text", text: toBuffer(data.data).toString() };
  if (type !== "image" && type !== "audio") {
    throw refuse(`a file of the type ${mediaType}`, "give its text as a part of the type text");
  }
  if (data.type === "url") return { type, media: { url: data.originalUrl ?? data.url.href } };
  return { type, media: { data: typeof data.data === "string" ? data.data : toBuffer(data.data).toString("base64") } };
}

function toBuffer(data: Uint8Array | string): Buffer {
  return typeof data === "string" ? Buffer.from(data, "base64") : Buffer.from(data);
}

/** Return parts with a line break between adjacent texts, which the worker joins as they are. */
function separateTexts(parts: Part[]): Part[] {
  return parts.map((part, index) =>
    part.type === "text" && parts[index + 1]?.type === "text" ? { ...part, text: `${part.text}\n` } : part,
  );
}

/** Return parts as one text if they are texts. */
function joinTexts(parts: Part[]): Content {
  const texts = parts.flatMap((part) => (part.type === "text" ? [part.text] : []));
  return texts.length === parts.length ? texts.join("") : parts;
}

function refuse(functionality: string, fix: string): UnsupportedFunctionalityError {
  return new UnsupportedFunctionalityError({ functionality, message: `${functionality} is not supported; ${fix}` });
}
