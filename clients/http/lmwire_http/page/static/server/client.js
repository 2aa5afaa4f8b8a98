// Requests to the server that the page came from.
import { apiKey } from "./api_key.js";

/** The server refused a request, or did not answer it (status 0). */
export class ServerError extends Error {
  constructor(message, status, { code = "", retryable = false } = {}) {
    super(message);
    Object.assign(this, { status, code, retryable });
  }
}

/** Send a request, with a body of JSON or a form, and return the response once its head is there. Throws ServerError, and AbortError by the signal. */
export async function send(path, { method, body, signal } = {}) {
  const headers = {};
  if (apiKey.value) headers.authorization = `Bearer ${apiKey.value}`;
  const isForm = body instanceof FormData;
  if (body && !isForm) headers["content-type"] = "application/json";
  let response;
  try {
    response = await fetch(path, { method: method ?? (body ? "POST" : "GET"), headers, signal, body: isForm ? body : body && JSON.stringify(body), cache: "no-store" });
  } catch (error) {
    throw error.name === "AbortError" ? error : new ServerError("The server does not answer.", 0);
  }
  if (!response.ok) throw await problemOf(response);
  return response;
}

export async function fetchJson(path, options) {
  return (await send(path, options)).json();
}

/** Yield the data of each server-sent event. Throws ServerError if the connection breaks. */
export async function* readEvents(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await readPart(reader);
      if (done) return;
      const events = (rest + value).split("\n\n");
      rest = events.pop();
      for (const event of events) if (event.startsWith("data: ")) yield event.slice("data: ".length);
    }
  } finally {
    reader.cancel().catch(() => {}); // the stream may have failed already
  }
}

async function readPart(reader) {
  try {
    return await reader.read();
  } catch (error) {
    throw error.name === "AbortError" ? error : new ServerError("The connection to the server was lost.", 0);
  }
}

async function problemOf(response) {
  const text = await response.text().catch(() => "");
  try {
    const { error } = JSON.parse(text);
    return new ServerError(error.message ?? error, response.status, error);
  } catch {
    return new ServerError(`The server answered with status ${response.status}.`, response.status);
  }
}
