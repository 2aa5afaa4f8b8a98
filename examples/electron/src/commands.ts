import type { ChatService } from "./chat-service.js";

const MAX_MODEL_LENGTH = 4096;
const MAX_TEXT_LENGTH = 1 << 20;

/**
 * Do what the page asks for. What is not a command is ignored: the page runs in a sandbox, and its messages are not trusted.
 *
 * @param command - A `Command` of api.ts, or anything else.
 */
export function perform(service: ChatService, command: unknown): void {
  const { type, model, text } = Object(command) as Record<string, unknown>;
  if (type === "stop") service.stop();
  else if (type === "load" && isText(model, MAX_MODEL_LENGTH)) void service.load(model);
  else if (type === "chat" && isText(text, MAX_TEXT_LENGTH)) void service.chat(text);
}

function isText(value: unknown, maxLength: number): value is string {
  return typeof value === "string" && value !== "" && value.length <= maxLength;
}
