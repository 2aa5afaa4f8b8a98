import assert from "node:assert/strict";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { fileURLToPath } from "node:url";
import { embedMany, generateObject, generateText, stepCountIs, streamText, tool } from "ai";
import { z } from "zod";
import { createLmwire, type LmwireProvider } from "../src/index.js";

const IN_VENV = fileURLToPath(new URL("../../../../.venv/bin/lmwire", import.meta.url));
const LMWIRE = existsSync(IN_VENV) ? IN_VENV : "lmwire";
const TINY = "builtin:tiny";

/** Return a provider whose workers end with the test. */
function provide(test: TestContext, ...args: string[]): LmwireProvider {
  const lmwire = createLmwire({ start: { command: [LMWIRE, ...args] } });
  test.after(() => lmwire.close());
  return lmwire;
}

/** Return a provider of mocks that follow rules. */
function script(test: TestContext, ...rules: object[]): LmwireProvider {
  const folder = mkdtempSync(join(tmpdir(), "lmwire-ai-"));
  test.after(() => rmSync(folder, { recursive: true }));
  const file = join(folder, "scenario.json");
  writeFileSync(file, JSON.stringify({ rules }));
  return provide(test, "mock", "--scenario", file);
}

test("generateText answers, and counts tokens", async (t) => {
  const { text, usage, finishReason } = await generateText({
    model: provide(t, "worker")(TINY),
    prompt: "Who are you?",
  });
  assert(text);
  assert.equal(finishReason, "stop");
  assert(usage.inputTokens && usage.outputTokens);
});

test("streamText streams text, and reasoning apart from it", async (t) => {
  const lmwire = script(t, { reply: { reasoning: "Hm. So.", text: "to be" } });
  const result = streamText({ model: lmwire("mock"), prompt: "?" });
  let text = "";
  for await (const part of result.textStream) text += part;
  assert.equal(text, "to be");
  assert.equal(await result.reasoningText, "Hm. So.");
  assert.equal(await result.finishReason, "stop");
  assert((await result.usage).outputTokens);
});

test("generateObject follows a schema", async (t) => {
  const schema = z.object({ born: z.number().int() });
  const model = provide(t, "worker")(TINY);
  const { object } = await generateObject({ model, schema, prompt: "Ada was born in 1815.", maxOutputTokens: 200 });
  assert.equal(typeof object.born, "number");
});

for (const isStreamed of [false, true]) {
  test(`a tool is called, and its result is in the next turn: ${isStreamed ? "streamText" : "generateText"}`, async (t) => {
    const lmwire = script(
      t,
      {
        match: { last_message: "cold in Oslo" },
        reply: { tool_calls: [{ name: "weather", arguments: { city: "Oslo" } }] },
      },
      { match: { last_message: "9 degrees" }, reply: { text: "Cold." } },
    );
    const weather = tool({
      description: "The weather now.",
      inputSchema: z.object({ city: z.string() }),
      execute: async ({ city }) => `${city}: 9 degrees`,
    });
    const call = { model: lmwire("mock"), tools: { weather }, stopWhen: stepCountIs(3), prompt: "Is it cold in Oslo?" };
    const result = isStreamed ? streamText(call) : await generateText(call);
    assert.equal(await result.text, "Cold.");
    assert.equal((await result.steps)[0]?.toolResults[0]?.output, "Oslo: 9 degrees");
  });
}

test("a call that is not whole does not run, and its text is content", async (t) => {
  const lmwire = script(t, { reply: { tool_calls: [{ name: "weather", arguments: '{"city": ' }] } });
  const weather = tool({
    inputSchema: z.object({ city: z.string() }),
    execute: async (): Promise<string> => assert.fail("it ran"),
  });
  const result = streamText({ model: lmwire("mock"), tools: { weather }, prompt: "?" });
  assert.match(await result.text, /weather/);
  assert.deepEqual(await result.toolCalls, []);
});

test("an image is a part of its message", async (t) => {
  const lmwire = provide(t, "mock");
  const content = [
    { type: "text" as const, text: "What is it?" },
    { type: "image" as const, image: new Uint8Array([0x89, 0x50, 0x4e, 0x47]) },
  ];
  const { text } = await generateText({ model: lmwire("mock"), messages: [{ role: "user", content }] });
  assert.match(text, /What is it\?/);
});

test("an abort cancels the request", async (t) => {
  const lmwire = script(t, { reply: { text: "on ", then: "repeat" } });
  const controller = new AbortController();
  const result = streamText({ model: lmwire("mock"), prompt: "?", abortSignal: controller.signal });
  let isAborted = false;
  for await (const part of result.fullStream) {
    if (part.type === "text-delta") controller.abort();
    isAborted ||= part.type === "abort";
  }
  assert(isAborted);
});

test("a refusal is tried again only if that can help", async (t) => {
  const busy = { match: { last_message: "later" }, times: 1, reply: { error: { code: "busy", retryable: true } } };
  const lmwire = script(t, busy, { match: { last_message: "never" }, reply: { error: { code: "bad_model" } } });
  const { text } = await generateText({ model: lmwire("mock"), prompt: "later" });
  assert.equal(text, "later");
  await assert.rejects(generateText({ model: lmwire("mock"), prompt: "never" }), { name: "AI_APICallError" });
});

test("further fields of the protocol come by providerOptions", async (t) => {
  const lmwire = script(t, { match: { fields: { reasoning: "off" } }, reply: { text: "no thoughts" } });
  const providerOptions = { lmwire: { reasoning: "off" } };
  const { text } = await generateText({ model: lmwire("mock"), prompt: "?", providerOptions });
  assert.equal(text, "no thoughts");
});

test("texts become vectors", async (t) => {
  const model = provide(t, "mock").embeddingModel("mock");
  const { embeddings, usage } = await embedMany({ model, values: ["sea", "ocean"] });
  assert.equal(embeddings.length, 2);
  assert.notDeepEqual(embeddings[0], embeddings[1]);
  assert(usage.tokens);
});

test("a worker that died is replaced at the next request", async (t) => {
  const lmwire = provide(t, "mock", "--fault", "crash-after-terminal");
  const model = lmwire("mock");
  for (const prompt of ["one", "two"]) {
    const { text } = await generateText({ model, prompt });
    assert.equal(text, prompt);
  }
});
