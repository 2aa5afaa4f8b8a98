import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { FOREVER, folderOf, isAlive, Launcher, LMWIRE, serve, writeMock } from "./workers.js";

test("the worker in the app's resources streams the answers of the built-in model", async (t) => {
  const resourcesPath = folderOf(t);
  mkdirSync(join(resourcesPath, "lmwire"));
  const bundle = new Launcher(join(resourcesPath, "lmwire", "lmwire"), [LMWIRE]);
  Object.assign(process, { resourcesPath });
  t.after(() => Object.assign(process, { resourcesPath: undefined }));
  const { service, events } = serve(t, {});
  await service.load("builtin:tiny");
  assert.equal((await events.first("progress")).type, "progress");
  assert.deepEqual(events.take(), [{ type: "loaded", model: "builtin:tiny" }]);
  await service.chat("Who are you?");
  assert((await events.first("text")).type === "text");
  assert.deepEqual(events.take().at(-1), { type: "ended", reason: "stop" });
  await service.close();
  assert(!isAlive(bundle.pid));
});

test("the model receives the conversation so far", async (t) => {
  const mock = writeMock(t, {
    match: {
      fields: {
        messages: [
          { role: "user", content: "one" },
          { role: "assistant", content: "one" },
          { role: "user", content: "two" },
        ],
      },
    },
    reply: { text: "I remember." },
  });
  const { service, events } = serve(t, { command: [mock.program] });
  await service.load("mock");
  await service.chat("one");
  events.take();
  await service.chat("two");
  assert.deepEqual(events.take(), [
    { type: "text", text: "I remember." },
    { type: "ended", reason: "stop" },
  ]);
});

test("a stop keeps the text so far, and the next message is answered", async (t) => {
  const { service, events } = serve(t, { command: [writeMock(t, FOREVER).program] });
  await service.load("mock");
  const answer = service.chat("forever");
  await events.first("text");
  service.stop();
  await answer;
  assert.deepEqual(events.take().at(-1), { type: "ended", reason: "cancelled" });
  await service.chat("still there");
  assert.deepEqual(events.take(), [
    { type: "text", text: "still there" },
    { type: "ended", reason: "stop" },
  ]);
});

test("a stop ends a load", async (t) => {
  const progress = [{ stage: "download", current: 1, total: 9, unit: "bytes", delay_ms: 150 }];
  const mock = writeMock(t, { match: { cmd: "load" }, times: 1, reply: { progress, then: "wait" } });
  const { service, events } = serve(t, { command: [mock.program] });
  const load = service.load("mock");
  await events.first("progress");
  service.stop();
  await load;
  assert.deepEqual(events.take(), [{ type: "ended", reason: "cancelled" }]);
});

test("a crash is reported, and the next message starts a new worker with the model", async (t) => {
  const mock = writeMock(t, FOREVER);
  const { service, events } = serve(t, { command: [mock.program] });
  await service.load("mock");
  const answer = service.chat("forever");
  await events.first("text");
  const { pid } = mock;
  process.kill(pid, "SIGKILL");
  await answer;
  const end = events.take().at(-1)!;
  assert(end.type === "failed" && end.message.endsWith("The next message starts a new worker."), JSON.stringify(end));
  await service.chat("hello again");
  assert.deepEqual(events.take(), [
    { type: "text", text: "hello again" },
    { type: "ended", reason: "stop" },
  ]);
  assert.notEqual(mock.pid, pid);
});

test("a load that fails says why, and another one can follow", async (t) => {
  const { service, events } = serve(t, { command: [LMWIRE, "mock"] });
  await service.chat("too early");
  assert.deepEqual(events.take(), [{ type: "failed", message: "no model is loaded" }]);
  await service.load("/nonexistent");
  const end = events.take()[0]!;
  assert(end.type === "failed" && end.message.includes("/nonexistent"), JSON.stringify(end));
  await service.load("mock");
  assert.deepEqual(events.take(), [{ type: "loaded", model: "mock" }]);
});

test("the end of the app ends an answer and the worker's process", async (t) => {
  const mock = writeMock(t, FOREVER);
  const { service, events } = serve(t, { command: [mock.program] });
  await service.load("mock");
  const answer = service.chat("forever");
  await events.first("text");
  const { pid } = mock;
  await service.close();
  await answer;
  assert(!isAlive(pid));
  await service.chat("too late");
  assert(!isAlive(mock.pid));
});
