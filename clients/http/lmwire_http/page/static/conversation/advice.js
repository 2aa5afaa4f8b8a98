// What the user can do about a request that failed.
const BY_CODE = {
  context_length_exceeded: "The conversation no longer fits into the model's context. Start a new chat, or shorten a message.",
  out_of_memory: "Unload another model in the list at the top, or choose a smaller one.",
  model_not_found: "Choose another model at the top.",
  unsupported: "Choose a model that can do this at the top, or start a new chat.",
};

/** Return a sentence, or an empty text if the error itself has to suffice. */
export function adviceFor({ status, code, retryable }) {
  if (status === 0) return "Try again once the server answers.";
  if (status === 401) return "Try again to enter another API key.";
  if (BY_CODE[code]) return BY_CODE[code];
  if (retryable) return "The server is busy. Try again in a moment.";
  return status >= 500 ? "Try again. If this fails again, the server's log has the cause." : "";
}
