import { CircuitBreaker } from "./circuit-breaker.js";
import { StartFailed, WorkerLost } from "./errors.js";
import { Watchdog } from "./watchdog.js";
import { type StartOptions, Worker } from "./worker.js";

/** Settings of a supervisor. */
export interface SupervisorOptions {
  /** Prepares each worker for requests, such as by a load. */
  setUp?: (worker: Worker) => Promise<unknown>;
  start?: StartOptions;
  /** Forbids starts after several failures. */
  circuitBreaker?: CircuitBreaker;
  /** Time without progress after which a worker with requests counts as hung, in milliseconds; 0 for no limit. */
  stepLimitMs?: number;
}

const STEP_LIMIT_MS = 300_000;

/**
 * Keeps a worker, and starts a new one after it has died or hung.
 *
 * The new worker starts when one is asked for, so a model that kills its worker is not loaded again while nobody waits.
 * Requests of a dead worker fail and are not repeated: only the caller knows whether half an answer was used.
 */
export class Supervisor {
  readonly #options: SupervisorOptions;
  readonly #breaker: CircuitBreaker;
  #current: Promise<Worker> | undefined;
  #watchdog: Watchdog | undefined;

  constructor(options: SupervisorOptions = {}) {
    this.#options = options;
    this.#breaker = options.circuitBreaker ?? new CircuitBreaker();
  }

  /**
   * Return the worker. If none is alive, start and set up a new one first.
   *
   * @throws WorkerUnavailable if too many have failed. No start was tried then.
   */
  async worker(): Promise<Worker> {
    const current = this.#current;
    if (current) {
      const worker = await current;
      if (!worker.lost) return worker;
      if (this.#current === current) {
        this.#breaker.recordFailure(worker.lost);
        this.#current = undefined;
        this.#watchdog?.stop();
        await worker.close();
      }
      return this.worker();
    }
    this.#breaker.check();
    const started = this.#start();
    this.#current = started;
    try {
      return await started;
    } catch (error) {
      if (this.#current === started) this.#current = undefined;
      throw error;
    }
  }

  /** End the worker, and return when its process is gone. */
  async close(): Promise<void> {
    const current = this.#current;
    this.#current = undefined;
    this.#watchdog?.stop();
    const worker = await current?.catch(() => undefined);
    await worker?.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #start(): Promise<Worker> {
    let worker: Worker | undefined;
    try {
      worker = await Worker.start(this.#options.start);
      const limit = this.#options.stepLimitMs ?? STEP_LIMIT_MS;
      if (limit) this.#watchdog = new Watchdog(worker, limit);
      await this.#options.setUp?.(worker);
      return worker;
    } catch (error) {
      if (error instanceof StartFailed || error instanceof WorkerLost) this.#breaker.recordFailure(error);
      this.#watchdog?.stop();
      await worker?.close();
      throw error;
    }
  }
}
