// The driver of this client for `lmwire conformance host`: node dist/test/conformance-driver.js.
//
// protocol/lmwire_conformance/HOSTS.md specifies it. With --events the driver also prints each event as the library's user
// gets it, for the test that compares the clients.

import { createInterface } from "node:readline";
import {
  type Answer,
  AnswerStream,
  CircuitBreaker,
  type Embeddings,
  type Logprob,
  RequestFailed,
  type RequestStream,
  type Speech,
  Supervisor,
  type Transcript,
  Worker,
} from "../src/index.js";

const command: string[] = JSON.parse(process.env.LMWIRE_WORKER_COMMAND ?? "[]");
const printsEvents = process.argv.includes("--events");
const shutdownTimeouts = { quit: 1000, stdin: 1000, term: 1000 };

interface Instruction {
  do: string;
  name: string;
  command: { cmd: string };
  timeout?: number;
  restart?: boolean;
  drain?: boolean;
}

function report(saw: string, members: object = {}): void {
  process.stdout.write(`${JSON.stringify({ saw, ...members })}\n`);
}

/** Print an event as the library's user gets it. JSON.stringify would write -0 as 0, and a typed array as an object. */
function reportEvent(name: string, kind: string, event: object): void {
  if (!printsEvents) return;
  const text = JSON.stringify({ saw: "event", name, kind, event }, (_, value) => {
    if (ArrayBuffer.isView(value)) return [...(value as Float32Array | Int16Array)];
    return Object.is(value, -0) ? "\0-0" : value;
  });
  process.stdout.write(`${text.replaceAll('"\\u0000-0"', "-0.0")}\n`);
}

/** Return the parts of an answer that other libraries have in their last event. */
function endOf({ finish_reason, stop, seed, usage, timings, choices, done }: Answer): object {
  const ends = done.choices?.map((end, index) => ({ ...end, finish_reason: choices[index]!.finish_reason }));
  return { finish_reason, stop, seed, usage, timings, choices: ends };
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
      if (instruction.drain) await (await this.#worker()).close({ drain: true });
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
      for await (const event of request as AsyncIterable<{ event: string }>) {
        reportEvent(name, event.event, event);
        reportText(name, event);
      }
      if (!(request instanceof AnswerStream)) {
        const result = (await request.result()) as object;
        reportEvent(name, "done", result);
        reportResult(name, result);
        return report("done", { name });
      }
      const answer: Answer = await request.result();
      reportEvent(name, "done", endOf(answer));
      const { choices, finish_reason } = answer;
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

/** Report vectors, samples and the text of a transcript. */
function reportResult(name: string, result: Partial<Embeddings & Transcript & Speech>): void {
  for (const [index, values] of (result.vectors ?? []).entries())
    report("vector", { name, index, values: [...values] });
  if (result.segments) report("text", { name, text: result.text });
  if (result.samples) report("samples", { name, values: [...result.samples] });
}

function reportText(name: string, event: Record<string, unknown>): void {
  if (event.event !== "token") return;
  const { token: text, choice, channel, logprobs } = event;
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
  if (error instanceof RequestFailed) reportEvent(name, "error", error.event);
  report("failed", { name, code, ...(error instanceof RequestFailed && { retryable: error.retryable }) });
}

const driver = new Driver();
for await (const line of createInterface({ input: process.stdin })) await driver.run(JSON.parse(line));
