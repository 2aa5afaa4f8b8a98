import { WorkerLost } from "./errors.js";
import type { PingDone } from "./generated/types.js";
import type { Worker } from "./worker.js";

/** Consecutive checks without progress that mean a hang. Counting checks, not time, survives a machine that slept. */
const CHECKS = 8;
/** States in which no step is due. */
const WITHOUT_STEPS: ReadonlySet<string> = new Set(["idle", "paused", "draining"]);

/** Kills a worker that makes no progress while requests wait for it. */
export class Watchdog {
  readonly #worker: Worker;
  readonly #stepLimitMs: number;
  readonly #timer: NodeJS.Timeout;
  #lastCheck = performance.now();
  #withoutProgress = 0;
  #isChecking = false;

  /**
   * @param stepLimitMs - Time without progress after which the worker counts as hung, in milliseconds.
   */
  constructor(worker: Worker, stepLimitMs: number) {
    this.#worker = worker;
    this.#stepLimitMs = stepLimitMs;
    this.#timer = setInterval(() => this.#check(), stepLimitMs / CHECKS).unref();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  async #check(): Promise<void> {
    if (this.#worker.lost) return this.stop();
    if (this.#isChecking) return;
    const started = performance.now();
    const sinceMs = started - this.#lastCheck;
    this.#lastCheck = started;
    if (!this.#worker.inFlight) {
      this.#withoutProgress = 0;
      return;
    }
    this.#isChecking = true;
    const ping = await this.#worker.ping({ timeoutMs: this.#stepLimitMs / CHECKS }).catch(() => undefined);
    this.#isChecking = false;
    this.#withoutProgress = ping && progresses(ping, sinceMs) ? 0 : this.#withoutProgress + 1;
    if (this.#withoutProgress < CHECKS || this.#worker.lost) return;
    this.stop();
    await this.#worker.kill(new WorkerLost(`the worker hangs: no progress within ${this.#stepLimitMs} ms`));
  }
}

function progresses(ping: PingDone, sinceMs: number): boolean {
  return WITHOUT_STEPS.has(ping.state) || ping.step_age_ms === undefined || ping.step_age_ms < sinceMs;
}
