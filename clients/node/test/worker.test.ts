import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { test } from "node:test";
import { promisify } from "node:util";
import {
  InvalidCommand,
  RequestFailed,
  RequestTimeout,
  UnsupportedByWorker,
  Worker,
  WorkerLost,
} from "../src/index.js";
import { LMWIRE, read, start, startMock, startScenario } from "./workers.js";

const FOREVER = { match: { last_message: "forever" }, reply: { text: "on ", then: "repeat" } };
const WEATHER = {
  type: "function" as const,
  function: { name: "weather", parameters: { type: "object", properties: { city: { type: "string" } } } },
};

/** Wait until no request is in flight, and check that the worker still answers. */
async function expectIdle(worker: Worker): Promise<void> {
  await worker.clearCache();
  assert.deepEqual(await read(worker, "still there"), { text: "still there" });
  while ((await worker.ping()).state !== "idle");
}

test("a chat streams its answer and ends with a result", async (t) => {
  const worker = await startMock(t);
  const stream = worker.chat("to be or not");
  let text = "";
  for await (const event of stream) if (event.event === "token") text += event.token;
  const answer = await stream.result();
  assert.equal(text, "to be or not");
  assert.equal(answer.text, text);
  assert.equal(answer.finish_reason, "stop");
  assert(answer.usage.completion_tokens > 0);
});

test("an answer has its reasoning, its choices and its log-probabilities", async (t) => {
  const choices = [
    { reasoning: "Hm.", text: "one" },
    { text: "two", finish_reason: "length" },
  ];
  const worker = await startScenario(t, { reply: { choices } });
  const answer = await worker.chat("?", { n: 2, logprobs: true, top_logprobs: 1 }).result();
  assert.deepEqual([answer.text, answer.reasoning], ["one", "Hm."]);
  assert.deepEqual([answer.choices[1]?.text, answer.choices[1]?.finish_reason], ["two", "length"]);
  assert.equal(answer.logprobs.length, answer.token_ids.length);
  assert.equal(answer.logprobs[0]?.top?.length, 1);
});

test("the tokens of a prompt are scored", async (t) => {
  const worker = await start(t, ["worker"]);
  await worker.load("builtin:tiny");
  const answer = await worker
    .generate("Once upon a time", { prompt_logprobs: true, logprobs: true, max_tokens: 1 })
    .result();
  const [first, ...others] = answer.prompt_logprobs;
  assert.equal(answer.prompt_logprobs.length, answer.usage.prompt_tokens);
  assert.equal(first?.logprob, undefined);
  assert(others.every(({ logprob = 1 }) => logprob <= 0));
});

test("a loop that ends early cancels the request and not the worker", async (t) => {
  const worker = await startScenario(t, FOREVER);
  for await (const text of worker.chat("forever").text()) if (text) break;
  await expectIdle(worker);
  assert.equal((await worker.stats()).requests.cancelled, 1);
});

test("a signal cancels the request and not the worker", async (t) => {
  const worker = await startScenario(t, FOREVER);
  const controller = new AbortController();
  const reason = new Error("the window was closed");
  const stream = worker.chat("forever", {}, { signal: controller.signal });
  await assert.rejects(async () => {
    for await (const event of stream) if (event.event === "token") controller.abort(reason);
  }, reason);
  await assert.rejects(stream.result(), reason);
  await expectIdle(worker);
});

test("a request whose signal is aborted is not sent", async (t) => {
  const worker = await startMock(t);
  await assert.rejects(worker.chat("hi", {}, { signal: AbortSignal.abort() }).result(), { name: "AbortError" });
  assert.equal((await worker.stats()).requests.accepted, 1); // the load
});

test("a cancel keeps the answer so far", async (t) => {
  const worker = await startScenario(t, { reply: { text: "so far", then: "wait" } });
  const stream = worker.chat("hi");
  let text = "";
  for await (const event of stream) {
    if (event.event === "token") text += event.token;
    if (text === "so far") stream.cancel();
  }
  const answer = await stream.result();
  assert.deepEqual([answer.text, answer.finish_reason], ["so far", "cancelled"]);
});

test("a request is given up after its time", async (t) => {
  const worker = await startScenario(t, FOREVER);
  await assert.rejects(worker.chat("forever", {}, { timeoutMs: 50 }).result(), RequestTimeout);
  await expectIdle(worker);
});

test("of two chats at once, one is cancelled and the other is whole", async (t) => {
  const worker = await start(t, ["worker"]);
  await worker.load("builtin:tiny");
  const [one, other] = [worker.chat("Who are you?"), worker.chat("Tell me more", { ignore_eos: true })];
  for await (const text of other.text()) if (text) other.cancel();
  assert.equal((await other.result()).finish_reason, "cancelled");
  const answer = await one.result();
  assert(answer.text);
  assert.equal(answer.finish_reason, "stop");
});

test("a model calls a tool, and answers with its result", async (t) => {
  const worker = await start(t, ["worker"]);
  await worker.load("builtin:tiny");
  const messages = [{ role: "user" as const, content: "Is it raining in Oslo?" }];
  const call = await worker.chat(messages, { tools: [WEATHER], tool_choice: "required", max_tokens: 200 }).result();
  const [first] = call.tool_calls;
  assert(first);
  assert.equal(first.name, "weather");
  assert.equal(typeof JSON.parse(first.arguments), "object");
  const turns = [
    { role: "assistant" as const, tool_calls: call.tool_calls },
    { role: "tool" as const, tool_call_id: first.id, content: "Rain." },
  ];
  const answer = await worker.chat([...messages, ...turns], { tools: [WEATHER], max_tokens: 8 }).result();
  assert(answer.token_ids.length);
});

test("a model follows a schema", async (t) => {
  const worker = await start(t, ["worker"]);
  await worker.load("builtin:tiny");
  const schema = {
    type: "object",
    properties: { born: { type: "integer" } },
    required: ["born"],
    additionalProperties: false,
  };
  const answer = await worker
    .chat("Ada was born in 1815.", { format: { type: "json_schema", schema }, max_tokens: 200 })
    .result();
  assert.equal(typeof JSON.parse(answer.text).born, "number");
});

test("texts become vectors, in both encodings", async (t) => {
  const worker = await startMock(t);
  const { vectors, dimensions } = await worker.embed(["sea", "ocean"]);
  const asNumbers = await worker.embed(["sea", "ocean"], { encoding: "float" });
  assert.deepEqual([vectors.length, vectors[0]?.length], [2, dimensions]);
  assert.deepEqual(vectors, asNumbers.vectors);
});

test("a recording becomes segments and a text", async (t) => {
  const worker = await startScenario(t, { match: { audio: "note" }, reply: { text: "Buy milk. And bread." } });
  const stream = worker.transcribe({ path: "/tmp/note.wav" });
  const texts: string[] = [];
  for await (const event of stream) if (event.event === "segment") texts.push(event.text);
  const transcript = await stream.result();
  assert.equal(texts.length, 2);
  assert.equal(transcript.text, texts.join(""));
});

test("a text becomes a speech", async (t) => {
  const worker = await startMock(t);
  const stream = worker.speak("Buy milk. And bread.");
  let parts = 0;
  for await (const event of stream) if (event.event === "audio") parts++;
  const { samples, sample_rate = 0, duration_s, finish_reason } = await stream.result();
  assert(parts > 0);
  assert.equal(finish_reason, "stop");
  assert(Math.abs(samples.length / sample_rate - duration_s) < 0.01);
});

test("a prompt has tokens", async (t) => {
  const worker = await startMock(t);
  const tokens = await worker.tokenize("to be or");
  assert.deepEqual([tokens.text, tokens.token_ids.length], ["to be or", tokens.count]);
});

test("a refused request names the field, and its code", async (t) => {
  const worker = await startMock(t);
  await assert.rejects(worker.chat("hi", { top_p: 7 }).result(), (error) => {
    assert(error instanceof RequestFailed);
    assert.deepEqual([error.code, error.retryable, error.field], ["invalid_request", false, "top_p"]);
    return true;
  });
});

test("a feature that the worker lacks is not sent", async (t) => {
  const worker = await startMock(t);
  const format = { type: "json_object" as const };
  await assert.rejects(worker.chat("hi", { format }).result(), (error) => {
    assert(error instanceof UnsupportedByWorker);
    assert.deepEqual(error.features, ["chat.format"]);
    return true;
  });
  await assert.rejects(Worker.start({ command: [LMWIRE, "mock"], features: ["chat.dance"] }), /lacks chat.dance/);
});

test("a number that JSON does not have is not sent", async (t) => {
  const worker = await startMock(t);
  await assert.rejects(worker.chat("hi", { temperature: Number.NaN }).result(), InvalidCommand);
});

test("a closed worker refuses requests", async (t) => {
  const worker = await startMock(t);
  await worker.close();
  await assert.rejects(worker.chat("hi").result(), WorkerLost);
});

test("a load reports its progress", async (t) => {
  const worker = await start(t, ["worker"]);
  const stages = new Set<string>();
  const model = await worker.load("builtin:tiny", {}, { onProgress: (event) => stages.add(event.stage) });
  assert(stages.size > 0);
  assert(model.capabilities.includes("chat"));
});

test("an idle worker does not keep the program alive, and ends with it", async () => {
  const index = new URL("../src/index.js", import.meta.url).href;
  const program = `
    import { Worker } from ${JSON.stringify(index)};
    const worker = await Worker.start({ command: [${JSON.stringify(LMWIRE)}, "mock"] });
    await worker.load("mock");
    console.log((await worker.chat("bye").result()).text);
  `;
  const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "--eval", program]);
  assert.equal(stdout, "bye\n");
});
