import assert from "node:assert/strict";
import { test } from "node:test";
import { RequestFailed, WorkerLost } from "lmwire";
import {
  ask,
  CancellationError,
  isAlive,
  message,
  model,
  provide,
  scenario,
  TextPart,
  Token,
  type ToolCallPart,
  textOf,
} from "./support.js";

const TINY = "builtin:tiny";
const HELLO = [message(1, new TextPart("Who are you?"))];

test("the models of this machine are offered, with what they take", async (t) => {
  const { provider } = provide(t, ["worker"]);
  const models = await provider.provideLanguageModelChatInformation({ silent: true });
  const tiny = models.find(({ id }) => id === TINY);
  assert.equal(tiny?.family, "qwen3");
  assert.equal(tiny.maxInputTokens + tiny.maxOutputTokens, 2048);
  assert.deepEqual(tiny.capabilities, { imageInput: false, toolCalling: true });
});

test("a model of the settings replaces the listed one of that name", async (t) => {
  const { provider } = provide(t, ["worker"], [{ name: TINY, contextLength: 1000, imageInput: true }]);
  const models = await provider.provideLanguageModelChatInformation({ silent: true });
  const tiny = models.filter(({ id }) => id === TINY);
  assert.equal(tiny.length, 1);
  assert.equal(tiny[0]!.maxInputTokens, 750);
  assert.equal(tiny[0]!.capabilities.imageInput, true);
});

test("models that cannot be listed are an error, unless the editor asks silently", async (t) => {
  const { provider, log } = provide(t, ["nonsense", "worker"]);
  await assert.rejects(provider.provideLanguageModelChatInformation({ silent: false }));
  assert.deepEqual(await provider.provideLanguageModelChatInformation({ silent: true }), []);
  assert.match(log[0]!, /cannot be listed/);
});

test("the built-in model answers in several parts, and counts tokens", async (t) => {
  const { provider } = provide(t, ["worker"]);
  const options = { modelOptions: { max_tokens: 12 } };
  const parts = await ask(provider, HELLO, { model: TINY, options });
  assert.match(textOf(parts), /^I am/);
  assert(parts.length > 1);
  const count = await provider.provideTokenCount(model(TINY), "I am the");
  assert.equal(count, 3);
  assert.equal(await provider.provideTokenCount(model(TINY), message(2, new TextPart("I am the"))), count);
  assert.equal(await provider.provideTokenCount(model(TINY), ""), 0);
});

test("a tool is called, and its result is in the next turn", async (t) => {
  const calls = { tool_calls: [{ id: "c1", name: "weather", arguments: { city: "Rome" } }] };
  const { provider } = provide(
    t,
    scenario(
      t,
      { match: { last_message: "weather", has: ["tools"] }, reply: { text: "Let me see.", ...calls } },
      { match: { last_message: "30 degrees" }, reply: { text: "Hot." } },
    ),
  );
  const options = { tools: [{ name: "weather", description: "The weather.", inputSchema: {} }] };
  const question = message(1, new TextPart("The weather?"));
  const parts = await ask(provider, [question], { options });
  const call = parts.at(-1) as ToolCallPart;
  assert.equal(textOf(parts), "Let me see.");
  assert.deepEqual({ ...call }, { callId: "c1", name: "weather", input: { city: "Rome" } });
  const result = message(1, { callId: "c1", content: [new TextPart("30 degrees")] });
  assert.equal(textOf(await ask(provider, [question, message(2, call), result], { options })), "Hot.");
});

test("cancelling ends the request and not the worker", async (t) => {
  const { provider, workers } = provide(
    t,
    scenario(
      t,
      { match: { last_message: "Go on" }, reply: { tokens: ["so ", "far"], then: "wait" } },
      { reply: { text: "Yes." } },
    ),
  );
  const token = new Token();
  const parts: unknown[] = [];
  const onPart = (part: unknown) => {
    parts.push(part);
    if (textOf(parts) === "so far") token.cancel();
  };
  await assert.rejects(ask(provider, [message(1, new TextPart("Go on"))], { token, onPart }), CancellationError);
  assert.equal(token.listeners, 0);
  const worker = await workers.get("mock");
  assert.equal(textOf(await ask(provider, HELLO)), "Yes.");
  assert.equal(await workers.get("mock"), worker);
  assert.equal(worker.inFlight, 0);
});

test("a request that was cancelled during the load is not sent", async (t) => {
  const { provider, workers } = provide(t, ["mock"]);
  const token = new Token();
  const asked = ask(provider, HELLO, { token });
  token.cancel();
  await assert.rejects(asked, CancellationError);
  const { tokens } = await (await workers.get("mock")).stats();
  assert.equal(tokens.prompt, 0);
});

test("a worker that dies fails its request, and the next request starts another", async (t) => {
  const { provider, workers, log } = provide(
    t,
    scenario(t, { match: { last_message: "Go on" }, reply: { tokens: ["so far"], then: "wait" } }),
  );
  const onPart = async () => process.kill((await workers.get("mock")).pid, "SIGKILL");
  await assert.rejects(ask(provider, [message(1, new TextPart("Go on"))], { onPart }), WorkerLost);
  assert(
    log.some((line) => /signal SIGKILL/.test(line)),
    log.join("\n"),
  );
  assert.equal(textOf(await ask(provider, HELLO, { options: { modelOptions: { max_tokens: 3 } } })), "Who are you?");
});

test("a refusal is passed on with the worker's sentence", async (t) => {
  const { provider, log } = provide(t, scenario(t, { reply: { error: { code: "busy", message: "too much" } } }));
  await assert.rejects(ask(provider, HELLO), (error) => error instanceof RequestFailed && error.code === "busy");
  assert(log.some((line) => /too much/.test(line)));
});

test("a model that does not load is reported, and the next request tries again", async (t) => {
  const { provider } = provide(t, ["mock"]);
  await assert.rejects(ask(provider, HELLO, { model: "nobody/nothing" }), RequestFailed);
  await assert.rejects(ask(provider, HELLO, { model: "nobody/nothing" }), RequestFailed);
});

test("an idle worker ends when another model is asked for, and one in use does not", async (t) => {
  const rules = [
    { match: { cmd: "load" }, reply: {} },
    { match: { last_message: "Go on" }, reply: { tokens: ["so far"], then: "wait" } },
  ];
  const { provider, workers } = provide(t, scenario(t, ...rules));
  const token = new Token();
  let asked: Promise<unknown> | undefined;
  await new Promise<unknown>((onPart) => {
    asked = ask(provider, [message(1, new TextPart("Go on"))], { token, model: "first", onPart });
  });
  const first = await workers.get("first");
  const second = await workers.get("second");
  assert.equal(first.lost, undefined);
  token.cancel();
  await assert.rejects(asked!, CancellationError);
  await first.unload(); // a barrier: the cancelled request has ended
  await workers.get("third");
  assert.deepEqual([isAlive(first.pid), isAlive(second.pid)], [false, false]);
});

test("closing ends all workers", async (t) => {
  const { workers } = provide(t, ["mock"]);
  const { pid } = await workers.get("mock");
  await workers.close();
  assert(!isAlive(pid));
});
