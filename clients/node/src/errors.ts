import type { ErrorEvent } from "./generated/types.js";

/** The base of all errors of this package. */
export class LmwireError extends Error {
  override name = this.constructor.name;
}

/** The worker could not be started, or cannot be used. */
export class StartFailed extends LmwireError {}

/** The worker has refused a request, or failed on it. Other requests are not affected. */
export class RequestFailed extends LmwireError {
  /** One of the protocol's codes, such as `invalid_request`, or one that is newer than this package. */
  readonly code: string;
  /** Whether the same request can succeed later. */
  readonly retryable: boolean;
  /** The path of the field at fault, such as `messages[2].content`. */
  readonly field: string | undefined;
  /** The whole event. */
  readonly event: ErrorEvent;

  constructor(event: ErrorEvent) {
    super(event.error);
    this.code = event.code;
    this.retryable = event.retryable;
    this.field = event.field;
    this.event = event;
  }
}

/** The worker is gone. What came before is valid. The caller decides whether to repeat the request. */
export class WorkerLost extends LmwireError {
  readonly code = "worker_lost";
}

/** The request was given up after its time. */
export class RequestTimeout extends LmwireError {
  readonly code = "timeout";
}

/** The request needs features that the worker does not list. It was not sent. */
export class UnsupportedByWorker extends LmwireError {
  /** The missing features. */
  readonly features: string[];

  constructor(command: string, features: string[]) {
    super(`the worker is too old for this ${command}: it lacks ${features.join(", ")}`);
    this.features = features;
  }
}

/** The command cannot be written as a line, such as one with a number that is not finite. It was not sent. */
export class InvalidCommand extends LmwireError {}

/** Too many workers have died. No start was tried. */
export class WorkerUnavailable extends LmwireError {
  /** Time until the next start is allowed, in milliseconds. */
  readonly retryAfterMs: number;

  constructor(failures: number, retryAfterMs: number, cause: unknown) {
    super(`${failures} workers have failed; the next start is allowed in ${Math.ceil(retryAfterMs / 1000)} s`, {
      cause,
    });
    this.retryAfterMs = retryAfterMs;
  }
}
