// lmwire's own provider in Vercel's newest AI SDK. Arguments: the provider's module, and the program lmwire.
import { generateObject, generateText, stepCountIs, streamText, tool } from "ai";
import { z } from "zod";

const [module, program] = process.argv.slice(2);
const { createLmwire } = await import(module);
const lmwire = createLmwire({ start: { command: [program, "worker"] } });
const model = lmwire("builtin:tiny");
const bounds = { maxOutputTokens: 200, temperature: 0, maxRetries: 0 };
const weather = tool({
  description: "Get the weather of a city.",
  inputSchema: z.object({ city: z.string().max(20) }),
  execute: async ({ city }) => `21 degrees in ${city}`,
});

await run({
  streamText: async () => {
    const result = streamText({ model, prompt: "Who are you?", ...bounds });
    let text = "";
    for await (const delta of result.textStream) text += delta;
    return { text, tokens: (await result.usage).outputTokens };
  },
  generateObject: async () => {
    const schema = z.object({ name: z.string().max(8), age: z.number().int().min(0).max(120) });
    return (await generateObject({ model, prompt: "Ada is 36 years old.", schema, ...bounds })).object;
  },
  tools: async () => {
    const prompt = "What is the weather in Paris?";
    const options = { tools: { weather }, toolChoice: "required", stopWhen: stepCountIs(1) };
    const { toolResults } = await generateText({ model, prompt, ...options, ...bounds });
    return toolResults.map(({ toolName, input, output }) => ({ toolName, input, output }));
  },
});
await lmwire.close();
