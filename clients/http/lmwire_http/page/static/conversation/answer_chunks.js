// The chunks of a streamed chat completion, added to the message that they make up.
import { ServerError } from "../server/client.js";

/** Add a chunk. Returns whether it had a part of the answer. Throws ServerError if it reports one. */
export function addChunk(message, chunk) {
  if (chunk.error) throw new ServerError(chunk.error.message ?? "The answer failed.", 500, chunk.error);
  if (chunk.usage) message.usage = chunk.usage;
  if (chunk.prompt_progress) message.promptProgress = chunk.prompt_progress;
  const [choice] = chunk.choices ?? [];
  if (!choice) return false;
  if (choice.finish_reason) message.finish = choice.finish_reason;
  return addDelta(message, choice.delta);
}

function addDelta(message, delta) {
  if (delta.reasoning_content) message.reasoning = (message.reasoning ?? "") + delta.reasoning_content;
  if (delta.content) message.content += message.content ? delta.content : delta.content.replace(/^[\r\n]+/, "");
  for (const call of delta.tool_calls ?? []) addCall(message, call);
  return Boolean(delta.reasoning_content || delta.content || delta.tool_calls?.length);
}

function addCall(message, { index, id, function: { name, arguments: part } }) {
  message.calls ??= [];
  const call = (message.calls[index] ??= { id: "", name: "", arguments: "" });
  if (id) call.id = id;
  if (name) call.name = name;
  call.arguments += part ?? "";
}
