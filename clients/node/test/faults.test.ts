import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { test } from "node:test";
import { promisify } from "node:util";
import { RequestFailed, StartFailed, Worker, WorkerLost } from "../src/index.js";
import { isAlive, LMWIRE, read, start, startFaulty, startMock } from "./workers.js";

const IMPATIENT = { quit: 50, stdin: 50, term: 50 };

for (const fault of ["crash-mid-stream:after=2", "crash-mid-line:after=3", "crash-mid-stream:after=2,exit=0"]) {
  test(`a request of a killed worker is lost, and its text is kept: ${fault}`, async (t) => {
    const { text, error } = await read(await startFaulty(t, fault), "a b c d");
    assert(error instanceof WorkerLost);
    assert.equal(text, "a b ");
  });
}

test("the error of a lost request names the worker's end", async (t) => {
  const killed = await read(await startFaulty(t, "crash-mid-stream:signal=KILL"), "a b c d e");
  assert.match(String(killed.error), /signal SIGKILL/);
  const exited = await read(await startFaulty(t, "crash-mid-stream:exit=70"), "a b c d e");
  assert.match(String(exited.error), /exit code 70/);
});

test("an answer that came before the death is whole", async (t) => {
  assert.deepEqual(await read(await startFaulty(t, "crash-after-terminal"), "a b"), { text: "a b" });
});

for (const fault of ["garbage-between-events", "garbage-half-line", "long-line"]) {
  test(`a worker that breaks the protocol is killed: ${fault}`, async (t) => {
    const worker = await startFaulty(t, fault);
    const { error } = await read(worker, "a b c");
    assert(error instanceof WorkerLost);
    assert.match(error.message, /broke the protocol/);
    await worker.close();
    assert(!isAlive(worker.pid));
  });
}

test("a banner before hello is skipped", async (t) => {
  assert.deepEqual(await read(await startFaulty(t, "garbage-before-hello:bytes=60000"), "a b"), { text: "a b" });
});

test("a flood on stderr stops nothing, and its end is kept", async (t) => {
  let lines = 0;
  const worker = await startFaulty(t, "stderr-flood", { onStderr: () => lines++ });
  assert.deepEqual(await read(worker, "a b"), { text: "a b" });
  await worker.close();
  assert.equal(worker.stderr.length, 64);
  assert(lines > 64);
});

test("a grandchild that holds the pipes delays nothing", async (t) => {
  const worker = await startFaulty(t, "grandchild"); // it would live for 60 s
  assert.deepEqual(await read(worker, "a b"), { text: "a b" });
  await worker.close();
  assert(!isAlive(worker.pid));
});

test("a group is signalled once after the exit, and never again: its id can belong to others", async (t) => {
  const kill = t.mock.method(process, "kill", () => true);
  await assert.rejects(Worker.start({ command: ["sh", "-c", "exit 3"] }), /exit code 3/);
  assert.deepEqual(
    kill.mock.calls.map((call) => call.arguments[1]),
    ["SIGKILL"],
  );
});

test("a worker that never answers hello is a failed start, and is gone", async () => {
  const command = [LMWIRE, "mock", "--fault", "no-hello"];
  await assert.rejects(Worker.start({ command, startTimeoutMs: 1000 }), (error) => {
    assert(error instanceof StartFailed);
    assert.match(error.message, /not answered within 1000 ms/);
    return true;
  });
});

for (const fault of ["newer-version", "wrong-version", "crash-start"]) {
  test(`a worker that cannot be used is a failed start: ${fault}`, async () => {
    await assert.rejects(Worker.start({ command: [LMWIRE, "mock", "--fault", fault] }), StartFailed);
  });
}

test("a program that has nothing else to do gets the error of a failed start", async () => {
  const index = new URL("../src/index.js", import.meta.url).href;
  const command = JSON.stringify([LMWIRE, "mock", "--fault", "wrong-version"]);
  const program = `
    import { Worker } from ${JSON.stringify(index)};
    await Worker.start({ command: ${command} }).catch((error) => console.log(error.name));
  `;
  const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "--eval", program]);
  assert.equal(stdout, "StartFailed\n");
});

test("a program that does not exist is a failed start that names it", async () => {
  await assert.rejects(Worker.start({ command: ["/nonexistent/lmwire"] }), /nonexistent/);
});

test("a burst is read whole", async (t) => {
  const worker = await startFaulty(t, "burst:tokens=50000");
  const answer = await worker.chat("a b").result();
  assert.equal(answer.token_ids.length, 50_000);
});

test("a slow consumer loses nothing and delays nobody", async (t) => {
  const worker = await startFaulty(t, "burst:tokens=20000");
  let tokens = 0;
  let others = 0;
  for await (const event of worker.chat("slow")) {
    if (others++ < 3) {
      await worker.ping();
      assert((await worker.chat("quick").result()).text);
    }
    if (event.event === "token") tokens += event.token_ids.length;
  }
  assert.equal(tokens, 20_000);
});

for (const fault of ["ignore-quit", "ignore-eof", "ignore-sigterm"]) {
  test(`every step of the shutdown ends the worker that needs it: ${fault}`, async (t) => {
    const worker = await startFaulty(t, fault, { shutdownTimeouts: IMPATIENT });
    await worker.close();
    assert(!isAlive(worker.pid));
  });
}

test("a close ends a worker whose engine hangs, and its requests are lost", async (t) => {
  // With SIGTERM alone the worker would write its terminals, if it had the time.
  const faults = ["--fault", "stall:after=1", "--fault", "ignore-sigterm"];
  const worker = await startMock(t, faults, { shutdownTimeouts: IMPATIENT });
  const stream = worker.chat("a b c");
  const events = stream[Symbol.asyncIterator]();
  await events.next();
  await worker.close();
  await assert.rejects(stream.result(), WorkerLost);
});

test("events that are awaited together come in order, and an error ends only the first wait after them", async (t) => {
  const worker = await startFaulty(t, "crash-mid-stream:after=2");
  const events = worker.chat("a b c d")[Symbol.asyncIterator]();
  const results = await Promise.allSettled(Array.from({ length: 6 }, () => events.next()));
  const seen = results.map((result) => {
    if (result.status === "rejected") return result.reason.constructor;
    const event = result.value.value;
    return event?.event === "token" ? event.token : event?.event;
  });
  assert.deepEqual(seen, ["progress", "a ", "b ", WorkerLost, undefined, undefined]);
});

test("leaving a loop ends a wait for an event", async (t) => {
  const worker = await startFaulty(t, "stall:after=1", { shutdownTimeouts: IMPATIENT });
  const stream = worker.chat("a b c");
  const events = stream[Symbol.asyncIterator]();
  await events.next(); // progress
  await events.next();
  const waiting = events.next();
  await events.return?.();
  for (const result of [waiting, events.next()]) assert.deepEqual(await result, { value: undefined, done: true });
  assert.throws(() => stream[Symbol.asyncIterator](), /can be read once/);
});

for (const fault of ["duplicate-terminal", "event-after-terminal", "unknown-id", "unknown-event", "unknown-fields"]) {
  test(`unusual events change nothing: ${fault}`, async (t) => {
    assert.deepEqual(await read(await startFaulty(t, fault), "a b"), { text: "a b" });
  });
}

test("an unknown finish_reason reads as other", async (t) => {
  const answer = await (await startFaulty(t, "unknown-values")).chat("a b").result();
  assert.equal(answer.finish_reason, "other");
});

test("a failed load says whether a model is loaded", async (t) => {
  const worker = await start(t, ["mock", "--fault", "failed-load"]);
  await assert.rejects(worker.load("mock"), (error) => {
    assert(error instanceof RequestFailed);
    assert.equal(error.code, "bad_model");
    assert.equal(error.event.loaded, false);
    return true;
  });
});
