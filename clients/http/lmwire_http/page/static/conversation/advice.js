// What the user can do about a request that failed: a sentence, and the buttons that do it.
const TRUNCATE = { action: "truncate", label: "Leave out the oldest messages" };
const NEW_CHAT = { action: "new", label: "New chat" };
const OTHER_MODEL = { action: "choose", label: "Choose another model" };
const RETRY = { action: "retry", label: "Try again" };
const BY_CODE = {
  context_length_exceeded: ["Start a new chat, or leave out the oldest messages.", NEW_CHAT, TRUNCATE],
  out_of_memory: ["Unload another model in the list at the top, or choose a smaller one.", OTHER_MODEL, RETRY],
  model_not_found: ["Choose another model.", OTHER_MODEL, RETRY],
  unsupported: ["Choose a model that can do this, or start a new chat.", OTHER_MODEL, NEW_CHAT, RETRY],
};

/** Return the advice for an error as { advice, remedies }. The advice is empty if the error itself has to suffice. */
export function adviceFor(error) {
  const [advice, ...remedies] = advised(error);
  return { advice, remedies };
}

function advised({ status, code, retryable }) {
  if (status === 0) return ["Try again once the server answers.", RETRY];
  if (status === 401) return ["Try again to enter another API key.", RETRY];
  if (BY_CODE[code]) return BY_CODE[code];
  if (retryable) return ["The server is busy. Try again in a moment.", RETRY];
  return [status >= 500 ? "Try again. If this fails again, the server's log has the cause." : "", RETRY];
}

/** Return a problem as a sentence: errors of the API begin in lower case, and have no full stop. */
export function asSentence(problem) {
  const text = problem.trim();
  return `${text.slice(0, 1).toUpperCase()}${text.slice(1)}${/[.!?…]$/.test(text) ? "" : "."}`;
}
