// The body of a chat completion request, from the messages and the settings.

/** Return the body. The last message may be an answer to continue. */
export function chatRequest(model, messages, settings) {
  const { system, sampling, effort, isJson, schema, truncates, offered = [] } = settings;
  const tools = [...(settings.tools.trim() ? JSON.parse(settings.tools) : []), ...offered];
  const last = messages.at(-1);
  const isContinued = last?.role === "assistant";
  const turns = (isContinued ? messages.slice(0, -1) : messages).flatMap(wireMessage);
  return {
    model,
    messages: system.trim() ? [{ role: "system", content: system }, ...turns] : turns,
    stream: true,
    stream_options: { include_usage: true },
    return_progress: true,
    ...sampling,
    ...(truncates && { truncate: "left" }),
    ...(effort && { reasoning_effort: effort }),
    ...(isJson && { response_format: responseFormat(schema) }),
    ...(tools.length && { tools }),
    ...(isContinued && { prefix: last.content }),
  };
}

function responseFormat(schema) {
  if (!schema.trim()) return { type: "json_object" };
  return { type: "json_schema", json_schema: { name: "answer", schema: JSON.parse(schema) } };
}

function wireMessage(message) {
  switch (message.role) {
    case "user":
      return [{ role: "user", content: userContent(message) }];
    case "tool":
      return [{ role: "tool", tool_call_id: message.callId, content: message.content }];
    default:
      return answerTurn(message);
  }
}

function userContent({ content, attachments = [] }) {
  if (!attachments.length) return content;
  const parts = attachments.map(wireAttachment);
  return content ? [...parts, { type: "text", text: content }] : parts;
}

function wireAttachment({ kind, name, data }) {
  if (kind === "image") return { type: "image_url", image_url: { url: data } };
  if (kind === "sound") return { type: "input_audio", input_audio: { data: data.slice(data.indexOf(",") + 1) } };
  return { type: "text", text: `${name}:\n\n${data}\n` };
}

/** Return an answer as an earlier turn. One that failed before its first word is none. */
function answerTurn({ content, reasoning, finish, calls = [] }) {
  const whole = finish === "tool_calls" ? calls : [];
  if (!content && !whole.length) return [];
  if (!whole.length) return [{ role: "assistant", content }];
  const turn = { role: "assistant", content: content || null, tool_calls: whole.map(wireCall) };
  return [reasoning ? { ...turn, reasoning_content: reasoning } : turn];
}

function wireCall(call) {
  return { id: call.id, type: "function", function: { name: call.name, arguments: call.arguments } };
}
