import assert from "node:assert/strict";
import { after, test } from "node:test";
import { APICallError, type LanguageModelV4Prompt, type LanguageModelV4StreamPart } from "@ai-sdk/provider";
import { embedMany, generateObject, generateText, isStepCount, Output, streamText, tool } from "ai";
import { z } from "zod";
import { provide, record, script } from "./workers.js";

const tiny = provide({ after }, "worker")("builtin:tiny");
const PROMPT: LanguageModelV4Prompt = [{ role: "user", content: [{ type: "text", text: "a b c" }] }];

test("the provider has version 4 of the specification, and makes no images", (t) => {
  const lmwire = provide(t, "mock");
  const models = [lmwire("m"), lmwire.embeddingModel("m"), lmwire.transcriptionModel("m"), lmwire.speechModel("m")];
  for (const part of [lmwire, ...models]) assert.equal(part.specificationVersion, "v4");
  assert.throws(() => lmwire.imageModel("m"), { name: "AI_NoSuchModelError", message: /another provider/ });
});

test("generateText answers, and counts tokens", async () => {
  const { text, usage, finishReason } = await generateText({
    model: tiny,
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

test("generateObject, Output.object and a required tool follow a schema", async () => {
  const schema = z.object({ born: z.number().int() });
  const call = { model: tiny, prompt: "Ada was born in 1815.", maxOutputTokens: 200 };
  const { object } = await generateObject({ ...call, schema });
  assert.equal(typeof object.born, "number");
  const streamed = streamText({ ...call, output: Output.object({ schema }) });
  assert.equal(typeof (await streamed.output).born, "number");
  const store = tool({ description: "Store a year.", inputSchema: schema });
  const { toolCalls } = await generateText({ ...call, tools: { store }, toolChoice: "required" });
  assert(toolCalls[0] && !toolCalls[0].dynamic);
  assert.equal(typeof toolCalls[0].input.born, "number");
});

test("usage tells cached and reasoning tokens apart", async (t) => {
  const model = provide(t, "mock")("mock");
  await generateText({ model, prompt: "a b c" });
  const { usage } = await generateText({ model, prompt: "a b c", reasoning: "high" });
  const { inputTokens, inputTokenDetails, outputTokens, outputTokenDetails } = usage;
  assert.deepEqual([inputTokens, outputTokens], [3, 6]);
  assert.deepEqual([inputTokenDetails.noCacheTokens, inputTokenDetails.cacheReadTokens], [1, 2]);
  assert.deepEqual([outputTokenDetails.textTokens, outputTokenDetails.reasoningTokens], [3, 3]);
  assert.equal(usage.raw?.prompt_tokens, 3);
});

test("the seed, the times and log-probabilities are metadata of the provider", async (t) => {
  const providerOptions = { lmwire: { logprobs: true } };
  const result = streamText({ model: provide(t, "mock")("mock"), prompt: "one", seed: 5, providerOptions });
  const { response, providerMetadata } = await result.finalStep;
  assert.equal(response.modelId, "mock");
  assert.equal(providerMetadata?.lmwire?.seed, 5);
  assert(providerMetadata.lmwire.timings);
  assert(Array.isArray(providerMetadata.lmwire.logprobs) && providerMetadata.lmwire.logprobs.length === 1);
});

for (const [raw, reply] of [
  ["timeout", { text: "half", then: "wait" }],
  ["capacity", { text: "half", finish_reason: "capacity" }],
] as const) {
  test(`an answer that ends with ${raw} is interrupted, and keeps its text`, async (t) => {
    const providerOptions = { lmwire: { timeout_ms: raw === "timeout" ? 10_000 : 60_000 } };
    const model = script(t, { reply })("mock");
    const { text, finishReason, rawFinishReason } = await generateText({ model, prompt: "?", providerOptions });
    assert.deepEqual([text, finishReason, rawFinishReason], ["half", "interrupted", raw]);
  });
}

test("raw chunks are the worker's events", async (t) => {
  const { stream } = await provide(t, "mock")("mock").doStream({ prompt: PROMPT, includeRawChunks: true });
  const parts = (await Array.fromAsync(stream)) as LanguageModelV4StreamPart[];
  const raw = parts.flatMap((part) => (part.type === "raw" ? [part.rawValue as { event: string }] : []));
  assert.deepEqual([...new Set(raw.map(({ event }) => event))], ["progress", "token", "done"]);
  assert(parts.some(({ type }) => type === "ping")); // of the progress
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
    const call = { model: lmwire("mock"), tools: { weather }, stopWhen: isStepCount(3), prompt: "Is it cold in Oslo?" };
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

test("an image is a part of its message, and a model that does not see refuses it", async (t) => {
  const model = provide(t, "mock")("mock");
  const data = new Uint8Array([0x89, 0x50, 0x4e, 0x47]);
  const content = [
    { type: "text" as const, text: "What is it?" },
    { type: "file" as const, mediaType: "image", data },
  ];
  const call = { model, messages: [{ role: "user" as const, content }] };
  await assert.rejects(generateText(call), {
    name: "AI_UnsupportedFunctionalityError",
    message: /content\[1\]: this model takes no images/,
  });
  const { text } = await generateText({ ...call, providerOptions: { lmwire: { strict_media: false } } });
  assert.equal(text, "What is it?\n[1 image was attached]");
});

test("an abort cancels the request", async (t) => {
  const lmwire = script(t, { reply: { text: "on ", then: "repeat" } });
  const controller = new AbortController();
  const result = streamText({ model: lmwire("mock"), prompt: "?", abortSignal: controller.signal });
  let isAborted = false;
  for await (const part of result.stream) {
    if (part.type === "text-delta") controller.abort();
    isAborted ||= part.type === "abort";
  }
  assert(isAborted);
});

test("a stream that is cancelled before it is read cancels the request", async (t) => {
  const { lmwire, end } = record(t, { reply: { text: "on ", then: "repeat" } });
  const { stream } = await lmwire("mock").doStream({ prompt: PROMPT });
  await stream.cancel();
  assert((await end()).some(({ cmd }) => cmd === "cancel"));
});

test("an abort ends the wait for a model that loads", async (t) => {
  const lmwire = script(t, { match: { cmd: "load" }, reply: { then: "wait" } });
  const controller = new AbortController();
  const answer = generateText({ model: lmwire("mock"), prompt: "?", abortSignal: controller.signal });
  setImmediate(() => controller.abort());
  await assert.rejects(answer, { name: "AbortError" });
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

test("texts become vectors, of as many dimensions as asked for", async (t) => {
  const model = provide(t, "mock").embeddingModel("mock");
  const { embeddings, usage } = await embedMany({ model, values: ["sea", "ocean"], dimensions: 3 });
  assert.deepEqual(
    embeddings.map((vector) => vector.length),
    [3, 3],
  );
  assert.notDeepEqual(embeddings[0], embeddings[1]);
  assert(usage.tokens);
  await assert.rejects(embedMany({ model, values: ["sea"], dimensions: 9 }), /dimensions: .* 8 numbers, not 9/);
});

test("a worker that dies within an answer ends it with an error that can be tried again", async (t) => {
  const { stream } = await provide(t, "mock", "--fault", "crash-mid-stream")("mock").doStream({ prompt: PROMPT });
  const parts = (await Array.fromAsync(stream)) as LanguageModelV4StreamPart[];
  const last = parts.at(-1);
  assert(last?.type === "error" && APICallError.isInstance(last.error) && last.error.isRetryable);
});

test("a worker that died is replaced at the next request", async (t) => {
  const lmwire = provide(t, "mock", "--fault", "crash-after-terminal");
  const model = lmwire("mock");
  for (const prompt of ["one", "two"]) {
    const { text } = await generateText({ model, prompt });
    assert.equal(text, prompt);
  }
});
