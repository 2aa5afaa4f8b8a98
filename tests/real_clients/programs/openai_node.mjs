// OpenAI's client for Node. Arguments: URLs of the built-in model's server and of the scripted one.
import OpenAI from "openai";
import { zodResponseFormat } from "openai/helpers/zod";
import { z } from "zod";

const [tiny, scripted] = process.argv.slice(2).map(
  (url) => new OpenAI({ baseURL: `${url}/v1`, apiKey: "any", maxRetries: 0 }),
);
const model = "builtin:tiny";
const messages = [{ role: "user", content: "Who are you?" }];
const ada = [{ role: "user", content: "Ada is 36 years old." }];
const asked = [{ role: "user", content: "The weather in Rome?" }];
const parameters = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
const description = "Get the weather of a city.";
const weather = ({ city }) => `21 degrees in ${city}`;
const Person = z.object({ name: z.string().max(8), age: z.number().int().min(0).max(120) });

await run({
  chat: async () => {
    const { choices, usage } = await tiny.chat.completions.create({ model, messages });
    return { text: choices[0].message.content, tokens: usage.completion_tokens };
  },
  stream: async () => {
    const stream = tiny.chat.completions.stream({ model, messages, stream_options: { include_usage: true } });
    let deltas = 0;
    stream.on("content", () => { deltas += 1; });
    const { choices, usage } = await stream.finalChatCompletion();
    return { text: choices[0].message.content, deltas, tokens: usage.completion_tokens };
  },
  parse: async () => {
    const response_format = zodResponseFormat(Person, "person");
    const bounds = { max_tokens: 200, temperature: 0 };
    const { choices } = await tiny.chat.completions.parse({ model, messages: ada, response_format, ...bounds });
    return choices[0].message.parsed;
  },
  tools: async () => {
    const run = { type: "function", function: { name: "weather", description, parameters, parse: JSON.parse, function: weather } };
    return scripted.chat.completions.runTools({ model: "mock", messages: asked, tools: [run] }).finalContent();
  },
  response: async () => {
    const { output_text, usage } = await tiny.responses.create({ model, input: "Who are you?" });
    return { text: output_text, tokens: usage.output_tokens };
  },
  "response stream": async () => {
    const stream = tiny.responses.stream({ model, input: "Who are you?" });
    let deltas = 0;
    stream.on("response.output_text.delta", () => { deltas += 1; });
    const { output_text, usage } = await stream.finalResponse();
    return { text: output_text, deltas, tokens: usage.output_tokens };
  },
  "response tools": async () => {
    const tools = [{ type: "function", name: "weather", description, parameters, strict: false }];
    const first = await scripted.responses.create({ model: "mock", input: asked, tools });
    const call = first.output.find((item) => item.type === "function_call");
    const output = weather(JSON.parse(call.arguments));
    const input = [{ type: "function_call_output", call_id: call.call_id, output }];
    const second = await scripted.responses.create({ model: "mock", previous_response_id: first.id, input, tools });
    return second.output_text;
  },
  models: async () => {
    const ids = [];
    for await (const { id } of tiny.models.list()) ids.push(id);
    return ids;
  },
});
