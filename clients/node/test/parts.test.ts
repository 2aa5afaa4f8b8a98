import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { chmodSync, mkdirSync, readFileSync, realpathSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { dropNulls, isKnown, isObject, isWellFormed, type RawEvent } from "../src/event-check.js";
import { missingFeatures } from "../src/feature-check.js";
import { CircuitBreaker, findWorker, StartFailed, Supervisor, WorkerLost, WorkerUnavailable } from "../src/index.js";
import { LineSplitter } from "../src/line-splitter.js";
import { VERSION } from "../src/version.js";
import { folderOf, isAlive, LMWIRE, REPOSITORY, scenarioFile } from "./workers.js";

interface Vector {
  name: string;
  line: string | Array<string | { hex: string } | { repeat: string; times: number }>;
  command?: string;
  host?: string;
  ignored?: boolean;
}

function vectors(file: string): Vector[] {
  const lines = readFileSync(join(REPOSITORY, "protocol/vectors", file), "utf8")
    .trimEnd()
    .split("\n");
  return lines.map((line) => JSON.parse(line));
}

/** Return the event of a vector; undefined if its line is not a JSON object. */
function eventOf({ line }: Vector): RawEvent | undefined {
  if (typeof line !== "string") return undefined;
  try {
    const value: unknown = JSON.parse(line);
    if (!isObject(value)) return undefined;
    dropNulls(value);
    return value as RawEvent;
  } catch {
    return undefined;
  }
}

test("valid events are well formed, and malformed ones are not", () => {
  for (const vector of vectors("events.valid.jsonl")) {
    const event = eventOf(vector);
    if (event && !vector.ignored) assert(isWellFormed(event, vector.command ?? "chat"), vector.name);
  }
  for (const vector of vectors("events.invalid.jsonl")) {
    const event = eventOf(vector);
    if (!event || typeof event.event !== "string") continue;
    const fits = isKnown(event.event) && typeof event.id === "string" && isWellFormed(event, vector.command ?? "chat");
    if (vector.host === "end") assert(!fits, vector.name);
    if (vector.host === "accept") assert(fits, vector.name);
  }
});

test("commands of protocol 1.0 need no features, and newer parts name theirs", () => {
  const none = new Set<string>();
  assert.deepEqual(missingFeatures("chat", { messages: [{ role: "user", content: "hi" }], temperature: 1 }, none), []);
  assert.deepEqual(missingFeatures("chat", { messages: [], stop: "." }, none), ["chat.stop.string"]);
  assert.deepEqual(missingFeatures("chat", { messages: [], tools: [] }, new Set(["chat.tools"])), []);
  assert.deepEqual(missingFeatures("load", {}, none), ["load.path.absent"]);
  const result = { role: "tool", content: "9" };
  assert(missingFeatures("chat", { messages: [result] }, none).includes("chat.messages.tool_call_id.absent"));
  assert.deepEqual(missingFeatures("embed", { input: ["x"] }, none), ["embed"]);
});

test("bytes become lines, however they are divided", () => {
  const bytes = Buffer.from("ab\nü\n\nlast\nhalf");
  for (let size = 1; size <= bytes.length; size++) {
    const splitter = new LineSplitter(100);
    const lines = [];
    for (let start = 0; start < bytes.length; start += size)
      lines.push(...splitter.push(bytes.subarray(start, start + size)));
    assert.deepEqual(lines, ["ab", "ü", "", "last"]);
  }
});

test("a line that is not UTF-8 does not spoil its neighbours", () => {
  const bytes = Buffer.concat([Buffer.from("a\n"), Buffer.from([0xff, 0x0a]), Buffer.from("b\n")]);
  assert.deepEqual(new LineSplitter(100).push(bytes), ["a", undefined, "b"]);
});

test("lines before a line that is too long are read", () => {
  const splitter = new LineSplitter(4);
  assert.deepEqual(splitter.push(Buffer.from("ab\nabcde\ncd\n")), ["ab"]);
  assert(splitter.isOverflown);
});

/** Write a program that does nothing. */
function writeProgram(folder: string, name: string): string {
  mkdirSync(folder, { recursive: true });
  const program = join(folder, name);
  writeFileSync(program, "#!/bin/sh\n");
  chmodSync(program, 0o755);
  return program;
}

test("a worker is found by the variable, then on PATH, then by uvx if that is allowed", (t) => {
  const folder = folderOf(t);
  const lmwire = writeProgram(join(folder, "a"), "lmwire");
  const uvx = writeProgram(join(folder, "b"), "uvx");
  const env = { LMWIRE_WORKER: "/opt/lmwire", PATH: `relative::${join(folder, "a")}:${join(folder, "b")}` };
  assert.deepEqual(findWorker(env).command, ["/opt/lmwire", "worker"]);
  assert.deepEqual(findWorker({ ...env, LMWIRE_WORKER: '["ssh", "box", "lmwire"]' }).command, ["ssh", "box", "lmwire"]);
  assert.deepEqual(findWorker({ PATH: env.PATH }).command, [lmwire, "worker"]);
  assert.equal(findWorker({ PATH: join(folder, "b") }, { uvx: true }).command[0], uvx);
  const start = "no worker found: put lmwire on PATH, name a worker in $LMWIRE_WORKER, or ";
  const off = new StartFailed(`${start}allow a download with the option uvx`);
  assert.throws(() => findWorker({ PATH: join(folder, "b") }), off);
  assert.throws(
    () => findWorker({ PATH: "" }, { uvx: true }),
    new StartFailed(`${start}install uv for the option uvx`),
  );
  assert.throws(() => findWorker({ LMWIRE_WORKER: "[1]" }), /JSON list of strings/);
});

test("a worker beside the program comes first, also through a link to the program", (t) => {
  const folder = realpathSync(folderOf(t));
  const lmwire = writeProgram(join(folder, "app", "lmwire"), "lmwire");
  const index = new URL("../src/index.js", import.meta.url).href;
  const script = join(folder, "app", "main.mjs");
  writeFileSync(script, `import { findWorker } from "${index}"; console.log(JSON.stringify(findWorker().command));`);
  symlinkSync(script, join(folder, "link.mjs"));
  const env = { ...process.env, LMWIRE_WORKER: "/opt/lmwire" };
  const shown = execFileSync(process.execPath, ["--preserve-symlinks-main", join(folder, "link.mjs")], { env });
  assert.deepEqual(JSON.parse(shown.toString()), [lmwire, "worker"]);
});

test("an Electron app has its worker in its resources, and runs none beside a document", (t) => {
  const folder = realpathSync(folderOf(t));
  writeProgram(join(folder, "downloads", "lmwire"), "lmwire");
  const document = writeProgram(join(folder, "downloads"), "document");
  const lmwire = writeProgram(join(folder, "resources", "lmwire"), "lmwire");
  const index = new URL("../src/index.js", import.meta.url).href;
  const script = `
    Object.defineProperty(process, "versions", { value: { electron: "45.0.0" } });
    process.resourcesPath = process.env.RESOURCES;
    const { findWorker } = await import("${index}");
    console.log(JSON.stringify(findWorker().command));
  `;
  const env = { ...process.env, RESOURCES: join(folder, "resources") };
  const shown = execFileSync(process.execPath, ["--input-type=module", "--eval", script, document], { env });
  assert.deepEqual(JSON.parse(shown.toString()), [lmwire, "worker"]);
});

test("no worker runs that lies beside a file which the code of the command line or of stdin works on", (t) => {
  const folder = realpathSync(folderOf(t));
  writeProgram(join(folder, "lmwire"), "lmwire");
  const document = writeProgram(folder, "document");
  writeProgram(folder, "-");
  const index = new URL("../src/index.js", import.meta.url).href;
  const code = `import("${index}").then(({ findWorker }) => console.log(findWorker().command[0]));`;
  const env = { ...process.env, LMWIRE_WORKER: "/opt/lmwire" };
  for (const options of [["-e", code], ["--eval", code], [`--eval=${code}`], ["-p", code], ["-pe", code], ["-"]]) {
    for (const file of [document, "document"]) {
      const shown = execFileSync(process.execPath, [...options, file], { cwd: folder, env, input: code }).toString();
      assert.match(shown, /^\/opt\/lmwire$/m, options[0]);
    }
  }
});

test("the version is the package's", () => {
  const manifest = JSON.parse(readFileSync(join(REPOSITORY, "clients/node/package.json"), "utf8"));
  assert.equal(VERSION, manifest.version);
});

test("a circuit breaker forbids starts after failures, for longer each time", () => {
  let now = 0;
  const breaker = new CircuitBreaker({ limit: 2, backoffMs: 10, windowMs: 100, now: () => now });
  breaker.recordFailure(new Error("one"));
  breaker.check();
  breaker.recordFailure(new Error("two"));
  assert.throws(() => breaker.check(), WorkerUnavailable);
  now = 11;
  breaker.check();
  breaker.recordFailure(new Error("three"));
  now = 25;
  assert.throws(() => breaker.check(), /2 workers have failed/);
});

test("a supervisor starts a new worker after one has died, and none at the same time", async (t) => {
  let loads = 0;
  const supervisor = new Supervisor({
    start: { command: [LMWIRE, "mock", "--fault", "crash-mid-stream:after=1"] },
    setUp: async (worker) => {
      loads++;
      await worker.load("mock");
    },
  });
  t.after(() => supervisor.close());
  const [first, same] = await Promise.all([supervisor.worker(), supervisor.worker()]);
  assert.equal(first, same);
  await assert.rejects(first.chat("a b c").result(), WorkerLost);
  const [second, again] = await Promise.all([supervisor.worker(), supervisor.worker()]);
  assert.equal(second, again);
  assert.notEqual(second.pid, first.pid);
  assert.equal(loads, 2);
  assert(!isAlive(first.pid));
});

test("a supervisor replaces a worker that hangs", async (t) => {
  const hanging = scenarioFile(t, { match: { cmd: "load" }, reply: { then: "hang" } });
  // The only request is the one that hangs, since a slow one would look like it.
  const supervisor = new Supervisor({ start: { command: [LMWIRE, "mock", "--scenario", hanging] }, stepLimitMs: 400 });
  t.after(() => supervisor.close());
  const worker = await supervisor.worker();
  await assert.rejects(worker.load("mock"), /hangs/);
  assert.notEqual(await supervisor.worker(), worker);
});
