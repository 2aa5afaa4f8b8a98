import { WorkerUnavailable } from "./errors.js";

/** Settings of a circuit breaker. Times are in milliseconds. */
export interface CircuitBreakerOptions {
  /** Number of failures that open the breaker. */
  limit?: number;
  /** Time within which they must happen. */
  windowMs?: number;
  /** Time that starts are forbidden at first. Each further failure within the window doubles it. */
  backoffMs?: number;
  /** Longest time that starts are forbidden. */
  maxBackoffMs?: number;
  /** Returns the time, from any start. */
  now?: () => number;
}

/**
 * Forbids the start of workers for a while after several have failed.
 *
 * Source of the pattern: https://martinfowler.com/bliki/CircuitBreaker.html
 */
export class CircuitBreaker {
  readonly #options: Required<CircuitBreakerOptions>;
  #failures: number[] = [];
  #backoffMs = 0;
  #last: unknown;

  constructor(options: CircuitBreakerOptions = {}) {
    const defaults = { limit: 3, windowMs: 60_000, backoffMs: 5000, maxBackoffMs: 300_000 };
    this.#options = { ...defaults, now: () => performance.now(), ...options };
  }

  /** Record that a worker has died or failed to start. */
  recordFailure(error: unknown): void {
    const { limit, windowMs, backoffMs, maxBackoffMs, now } = this.#options;
    this.#last = error;
    this.#failures = [...this.#failures, now()].slice(-limit);
    const isOpen = this.#failures.length === limit && this.#failures.at(-1)! - this.#failures[0]! <= windowMs;
    this.#backoffMs = isOpen ? Math.min(Math.max(backoffMs, 2 * this.#backoffMs), maxBackoffMs) : 0;
  }

  /** Throw WorkerUnavailable if a start is forbidden now. */
  check(): void {
    if (!this.#backoffMs) return;
    const retryAfterMs = this.#failures.at(-1)! + this.#backoffMs - this.#options.now();
    if (retryAfterMs > 0) throw new WorkerUnavailable(this.#failures.length, retryAfterMs, this.#last);
  }
}
