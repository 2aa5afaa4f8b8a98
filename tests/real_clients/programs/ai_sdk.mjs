// Vercel's AI SDK with its three providers. Arguments: URLs of the built-in model's server and of the scripted one.
import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateObject, generateText, stepCountIs, streamText, tool } from "ai";
import { z } from "zod";

const [tiny, scripted] = process.argv.slice(2);
const key = { apiKey: "any" };
const providers = (url) => {
  const openai = createOpenAI({ baseURL: `${url}/v1`, ...key });
  const compatible = createOpenAICompatible({
    name: "lmwire", baseURL: `${url}/v1`, includeUsage: true, supportsStructuredOutputs: true, ...key,
  });
  return {
    responses: openai.responses,
    chat: openai.chat,
    compatible: compatible.chatModel,
    anthropic: createAnthropic({ baseURL: `${url}/v1`, ...key }),
  };
};
const schema = z.object({ name: z.string().max(8), age: z.number().int().min(0).max(120) });
const weather = tool({
  description: "Get the weather of a city.",
  inputSchema: z.object({ city: z.string() }),
  execute: async ({ city }) => `21 degrees in ${city}`,
});
const bounds = { maxOutputTokens: 200, temperature: 0, maxRetries: 0 };

const cases = {};
for (const name of Object.keys(providers(""))) {
  const model = providers(tiny)[name]("builtin:tiny");
  const mock = providers(scripted)[name]("mock");
  Object.assign(cases, {
    [`${name} generateText`]: async () => {
      const { text, usage, finishReason } = await generateText({ model, prompt: "Who are you?", ...bounds });
      return { text, finishReason, tokens: [usage.inputTokens, usage.outputTokens] };
    },
    [`${name} streamText`]: async () => {
      const result = streamText({ model, prompt: "Who are you?", ...bounds, onError: () => {} });
      let deltas = 0, text = "";
      for await (const delta of result.textStream) { deltas += 1; text += delta; }
      const usage = await result.usage;
      return { text, deltas, tokens: [usage.inputTokens, usage.outputTokens] };
    },
    [`${name} generateObject`]: async () => {
      const { object } = await generateObject({ model, schema, prompt: "Ada is 36 years old.", ...bounds });
      return object;
    },
    [`${name} tools`]: async () => {
      const asked = { model: mock, prompt: "The weather in Rome?", tools: { weather }, stopWhen: stepCountIs(3) };
      const { text, steps } = await generateText({ ...asked, ...bounds });
      return { text, calls: steps[0].toolCalls.map(({ toolName, input }) => ({ toolName, input })) };
    },
    [`${name} streamed tools`]: async () => {
      const asked = { model: mock, prompt: "The weather in Rome?", tools: { weather }, stopWhen: stepCountIs(3) };
      const result = streamText({ ...asked, ...bounds, onError: () => {} });
      const [text, steps] = [await result.text, await result.steps];
      return { text, calls: steps[0].toolCalls.map(({ toolName, input }) => ({ toolName, input })) };
    },
    [`${name} reasoning`]: async () => {
      const { text, reasoningText } = await generateText({ model: mock, prompt: "think aloud", ...bounds });
      return { text, reasoning: reasoningText };
    },
  });
}
await run(cases);
