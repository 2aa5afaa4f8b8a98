import {
  type LanguageModelV3FilePart,
  type LanguageModelV3Message,
  type LanguageModelV3Prompt,
  type LanguageModelV3TextPart,
  type LanguageModelV3ToolResultOutput,
  UnsupportedFunctionalityError,
} from "@ai-sdk/provider";
import type { Message } from "lmwire";

type Part = Exclude<NonNullable<Message["content"]>, string>[number];
type AssistantPart = Extract<LanguageModelV3Message, { role: "assistant" }>["content"][number];

/** Return a prompt of the AI SDK as messages of the protocol. */
export function toMessages(prompt: LanguageModelV3Prompt): Message[] {
  return prompt.flatMap(toProtocol);
}

function toProtocol(message: LanguageModelV3Message): Message[] {
  if (message.role === "system") return [{ role: "system", content: message.content }];
  if (message.role === "user") return [{ role: "user", content: message.content.map(toPart) }];
  if (message.role === "assistant") return [toAssistantMessage(message.content)];
  return message.content.flatMap((part) => {
    if (part.type !== "tool-result") return []; // an approval is the AI SDK's own matter
    return [{ role: "tool", tool_call_id: part.toolCallId, name: part.toolName, content: toText(part.output) }];
  });
}

function toPart(part: LanguageModelV3TextPart | LanguageModelV3FilePart): Part {
  return part.type === "text" ? { type: "text", text: part.text } : mediaPart(part);
}

function mediaPart({ mediaType, data }: LanguageModelV3FilePart): Part {
  const type = mediaType.split("/")[0];
  if (type !== "image" && type !== "audio") {
    throw new UnsupportedFunctionalityError({ functionality: `files of the type ${mediaType}` });
  }
  if (data instanceof URL) return { type, media: { url: data.href } };
  return { type, media: { data: typeof data === "string" ? data : Buffer.from(data).toString("base64") } };
}

function toAssistantMessage(content: AssistantPart[]): Message {
  let text = "";
  let reasoning = "";
  const calls = [];
  for (const part of content) {
    if (part.type === "text") text += part.text;
    else if (part.type === "reasoning") reasoning += part.text;
    else if (part.type === "tool-call") {
      calls.push({ id: part.toolCallId, name: part.toolName, arguments: JSON.stringify(part.input ?? {}) });
    } else throw new UnsupportedFunctionalityError({ functionality: `${part.type} in a message of the assistant` });
  }
  const isOnlyCalls = calls.length > 0 && !text;
  return {
    role: "assistant",
    ...(!isOnlyCalls && { content: text }),
    ...(reasoning && { reasoning }),
    ...(calls.length && { tool_calls: calls }),
  };
}

/** Return the result of a tool as text, which is what models read. */
function toText(output: LanguageModelV3ToolResultOutput): string {
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
      return output.value
        .map((part) => {
          if (part.type === "text") return part.text;
          throw new UnsupportedFunctionalityError({ functionality: `${part.type} in the result of a tool` });
        })
        .join("\n");
  }
}
