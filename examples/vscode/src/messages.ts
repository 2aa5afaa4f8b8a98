import type { ChatFields, Message } from "lmwire";
import type * as vscode from "vscode";

type Part = Exclude<NonNullable<Message["content"]>, string>[number];

/** The parts of an editor's message, told apart by their members, since the editor's classes are not here. */
interface AnyPart {
  value?: unknown;
  callId?: string;
  name?: string;
  input?: object;
  content?: unknown[];
  data?: Uint8Array;
  mimeType?: string;
}

/** The value of `LanguageModelChatMessageRole.Assistant`. */
const ASSISTANT = 2;
/** The value of `LanguageModelChatToolMode.Required`. */
const REQUIRED = 2;
/** Options of a request that the protocol has under the same names. */
const OPTIONS = ["temperature", "top_p", "top_k", "max_tokens", "seed", "stop"];

/** Return the editor's messages as messages of the protocol. */
export function toMessages(messages: readonly vscode.LanguageModelChatRequestMessage[]): Message[] {
  return messages.flatMap((message) => {
    const parts = message.content as AnyPart[];
    return message.role === ASSISTANT ? [fromAssistant(parts)] : fromUser(parts);
  });
}

/** Return the text of a message, for counting its tokens. */
export function toText(message: vscode.LanguageModelChatRequestMessage): string {
  return (message.content as AnyPart[])
    .map((part) => (part.input ? JSON.stringify(part.input) : (text(part) ?? resultText(part.content ?? []))))
    .join("\n");
}

/** Return the fields of a chat for the editor's options. */
export function toFields(options: vscode.ProvideLanguageModelChatResponseOptions): ChatFields {
  const { tools = [], toolMode, modelOptions = {} } = options;
  const fields = Object.fromEntries(OPTIONS.filter((name) => name in modelOptions).map((n) => [n, modelOptions[n]]));
  if (!tools.length) return fields;
  return {
    ...fields,
    tools: tools.map(({ name, description, inputSchema = {} }) => ({
      type: "function",
      function: { name, description, parameters: inputSchema as Record<string, unknown> },
    })),
    ...(toolMode === REQUIRED && { tool_choice: "required" }),
  };
}

/** Return the results of tools as messages of their own, which come before the user's next words. */
function fromUser(parts: AnyPart[]): Message[] {
  const results = parts.filter((part) => part.callId !== undefined);
  const content = parts.filter((part) => part.callId === undefined).flatMap(toPart);
  return [
    ...results.map((part) => ({
      role: "tool" as const,
      tool_call_id: part.callId!,
      content: resultText(part.content ?? []),
    })),
    ...(content.length || !results.length ? [{ role: "user" as const, content: content.length ? content : "" }] : []),
  ];
}

function fromAssistant(parts: AnyPart[]): Message {
  const content = parts.map((part) => text(part) ?? "").join("");
  const calls = parts.filter((part) => part.callId !== undefined && part.name !== undefined);
  return {
    role: "assistant",
    ...((content || !calls.length) && { content }),
    ...(calls.length && {
      tool_calls: calls.map((part) => ({
        id: part.callId!,
        name: part.name!,
        arguments: JSON.stringify(part.input ?? {}),
      })),
    }),
  };
}

function toPart(part: AnyPart): Part[] {
  if (part.data && part.mimeType?.startsWith("image/")) {
    return [{ type: "image", media: { data: Buffer.from(part.data).toString("base64") } }];
  }
  const value = text(part);
  return value === undefined ? [] : [{ type: "text", text: value }];
}

/** Return the text of a part, or undefined for a part without text. Parts that the editor keeps for itself have none. */
function text(part: AnyPart): string | undefined {
  if (typeof part.value === "string") return part.value;
  const isText = part.mimeType?.startsWith("text/") || part.mimeType === "application/json";
  return part.data && isText ? Buffer.from(part.data).toString("utf8") : undefined;
}

/** Return the result of a tool as text, which is what models read. */
function resultText(content: readonly unknown[]): string {
  return content
    .map((part) => {
      const known = part as AnyPart;
      const value = text(known) ?? JSON.stringify(known.value ?? (known.data ? `a file, ${known.mimeType}` : part));
      return value ?? "";
    })
    .join("\n");
}
