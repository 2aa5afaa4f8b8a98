// The driver of this client for `lmwire conformance host`: node dist/test/conformance-driver.js.
//
// protocol/lmwire_conformance/HOSTS.md specifies it.

import { createInterface } from "node:readline";
import {
  AnswerStream,
  CircuitBreaker,
  type Logprob,
  RequestFailed,
  type RequestStream,
  Supervisor,
  Worker,
} from "../src/index.js";

const command: string[] = JSON.parse(process.env.LMWIRE_WORKER_COMMAND ?? "[]");
const shutdownTimeouts = { quit: 1000, stdin: 1000, term: 1000 };

interface Instruction {
  do: string;
  name: string;
  command: { cmd: string };
  timeout?: number;
  restart?: boolean;
}

function report(saw: string, members: object = {}): void {
  process.stdout.write(`${JSON.stringify({ saw, ...members })}\n`);
}

/** Runs the instructions of a case. */
class Driver {
  readonly #requests = new Map<string, RequestStream<unknown, unknown>>();
  #worker: () => Promise<Worker> = () => Promise.reject(new Error("no start"));
  #end: () => Promise<void> = async () => {};

  async run(instruction: Instruction): Promise<void> {
    if (instruction.do === "start") await this.#start(instruction);
    else if (instruction.do === "request") await this.#request(instruction);
    else if (instruction.do === "cancel") this.#requests.get(instruction.name)?.cancel();
    else if (instruction.do === "close") {
      await this.#end();
      report("closed");
    }
  }

  async #start({ timeout = 30, restart = false }: Instruction): Promise<void> {
    const start = { command, startTimeoutMs: timeout * 1000, shutdownTimeouts };
    this.#end = async () => {};
    try {
      if (restart) {
        const supervisor = new Supervisor({ start, circuitBreaker: new CircuitBreaker() });
        this.#worker = () => supervisor.worker();
        this.#end = () => supervisor.close();
        await supervisor.worker();
      } else {
        const worker = await Worker.start(start);
        this.#worker = async () => worker;
        this.#end = () => worker.close();
      }
      report("started");
    } catch {
      report("start_failed");
    }
  }

  async #request({ name, command, timeout }: Instruction): Promise<void> {
    try {
      const worker = await this.#worker();
      const request = worker.request(command, timeout === undefined ? {} : { timeoutMs: timeout * 1000 });
      this.#requests.set(name, request);
      void this.#read(name, request);
    } catch (error) {
      reportFailed(name, error);
    }
  }

  async #read(name: string, request: RequestStream<unknown, unknown>): Promise<void> {
    try {
      for await (const event of request) reportText(name, event as Record<string, unknown>);
      if (!(request instanceof AnswerStream)) return report("done", { name });
      const { choices, finish_reason } = await request.result();
      for (const [choice, { tool_calls }] of choices.entries()) {
        for (const call of tool_calls) report("tool_call", { name, choice, call });
      }
      const reasons = choices.map((choice) => choice.finish_reason);
      report("done", { name, finish_reason, ...(reasons.length > 1 && { choices: reasons }) });
    } catch (error) {
      reportFailed(name, error);
    }
  }
}

function reportText(name: string, { event, token: text, choice, channel, logprobs }: Record<string, unknown>): void {
  if (event !== "token") return;
  const known = (logprobs as Logprob[] | undefined)?.map(({ top, ...rest }) => ({
    ...knownMembers(rest),
    ...(top && { top: top.map(knownMembers) }),
  }));
  report("text", { name, text, choice, channel, logprobs: known });
}

/** Return the members that the protocol lists, as the kit wants them. */
function knownMembers({ token_id, token, logprob, bytes, text }: Omit<Logprob, "top">): object {
  return { token_id, token, logprob, bytes, text };
}

function reportFailed(name: string, error: unknown): void {
  const { code = "worker_lost" } = error as { code?: string };
  report("failed", { name, code, ...(error instanceof RequestFailed && { retryable: error.retryable }) });
}

const driver = new Driver();
for await (const line of createInterface({ input: process.stdin })) await driver.run(JSON.parse(line));
