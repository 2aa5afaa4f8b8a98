import { type StartOptions, Supervisor, type Worker } from "lmwire";

interface Entry {
  supervisor: Supervisor;
  /** The latest worker, once it has started. */
  worker?: Worker;
}

/** The workers, one for each model in use. A worker that no request uses ends when another model is asked for. */
export class Workers {
  readonly #entries = new Map<string, Entry>();
  readonly #startOptions: () => StartOptions;
  readonly #log: (line: string) => void;

  /**
   * @param startOptions - Returns the settings for a new worker.
   * @param log - Receives what workers write to stderr, and the progress of loads.
   */
  constructor(startOptions: () => StartOptions, log: (line: string) => void) {
    this.#startOptions = startOptions;
    this.#log = log;
  }

  /** Return the worker that has a model loaded. A dead one is replaced. */
  async get(model: string): Promise<Worker> {
    await this.#endIdle(model);
    let entry = this.#entries.get(model);
    if (!entry) {
      entry = { supervisor: this.#supervise(model) };
      this.#entries.set(model, entry);
    }
    return entry.supervisor.worker();
  }

  /** End all workers. The next request starts one. */
  async close(): Promise<void> {
    const entries = [...this.#entries.values()];
    this.#entries.clear();
    await Promise.all(entries.map(({ supervisor }) => supervisor.close()));
  }

  #supervise(model: string): Supervisor {
    const setUp = async (worker: Worker) => {
      const entry = this.#entries.get(model);
      if (entry) entry.worker = worker;
      this.#log(`${model}: loading in process ${worker.pid}`);
      let stage = "";
      const done = await worker.load(
        model,
        {},
        {
          onProgress: (event) => {
            if (event.stage !== stage) this.#log(`${model}: ${event.stage}`);
            stage = event.stage;
          },
        },
      );
      this.#log(`${model}: loaded from ${done.path}`);
    };
    return new Supervisor({ setUp, start: { ...this.#startOptions(), onStderr: this.#log } });
  }

  async #endIdle(except: string): Promise<void> {
    const idle = [...this.#entries].filter(([model, { worker }]) => model !== except && worker && !worker.inFlight);
    for (const [model] of idle) this.#entries.delete(model);
    await Promise.all(idle.map(([, { supervisor }]) => supervisor.close()));
  }
}
