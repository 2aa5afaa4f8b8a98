import { APICallError, UnsupportedFunctionalityError } from "@ai-sdk/provider";
import { RequestFailed, WorkerLost } from "lmwire";

/** Return an error that tells the AI SDK whether to try again. Other errors, such as an abort, stay as they are. */
export function toCallError(error: unknown): unknown {
  if (!(error instanceof RequestFailed || error instanceof WorkerLost)) return error;
  const { message } = error;
  if (error.code === "unsupported") {
    const functionality = (error instanceof RequestFailed && error.field) || message;
    return Object.assign(new UnsupportedFunctionalityError({ functionality, message }), { cause: error });
  }
  return new APICallError({
    message,
    url: "lmwire:",
    requestBodyValues: {},
    isRetryable: error instanceof RequestFailed ? error.retryable : true,
    cause: error,
  });
}
