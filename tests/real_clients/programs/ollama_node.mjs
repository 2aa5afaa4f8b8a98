// Ollama's client for Node. Arguments: URLs of the built-in model's server and of the scripted one.
import { Ollama } from "ollama";

const [tiny, scripted] = process.argv.slice(2).map((host) => new Ollama({ host }));
const model = "builtin:tiny";
const messages = [{ role: "user", content: "Who are you?" }];
const options = { temperature: 0, num_predict: 200 };
const parameters = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
const weather = { type: "function", function: { name: "weather", description: "Get the weather.", parameters } };
const person = {
  type: "object",
  properties: { name: { type: "string", maxLength: 8 }, age: { type: "integer", minimum: 0, maximum: 120 } },
  required: ["name", "age"],
  additionalProperties: false,
};

await run({
  chat: async () => {
    const { message, eval_count } = await tiny.chat({ model, messages, options });
    return { text: message.content, tokens: eval_count };
  },
  chat_stream: async () => {
    let text = "", tokens = 0;
    for await (const part of await tiny.chat({ model, messages, options, stream: true })) {
      text += part.message.content;
      tokens = part.eval_count ?? tokens;
    }
    return { text, tokens };
  },
  generate: async () => {
    const { response, eval_count } = await tiny.generate({ model, prompt: "Who are you?", options });
    return { text: response, tokens: eval_count };
  },
  schema: async () => {
    const asked = [{ role: "user", content: "Ada is 36 years old." }];
    const { message } = await tiny.chat({ model, messages: asked, format: person, options });
    return JSON.parse(message.content);
  },
  tools: async () => {
    const asked = [{ role: "user", content: "The weather in Rome?" }];
    const { message } = await scripted.chat({ model: "mock", messages: asked, tools: [weather] });
    asked.push(message);
    for (const { function: { name, arguments: given } } of message.tool_calls) {
      asked.push({ role: "tool", tool_name: name, content: `21 degrees in ${given.city}` });
    }
    return (await scripted.chat({ model: "mock", messages: asked, tools: [weather] })).message.content;
  },
  thinking: async () => {
    const asked = [{ role: "user", content: "think aloud" }];
    const { message } = await scripted.chat({ model: "mock", messages: asked, think: true });
    return { text: message.content, reasoning: message.thinking };
  },
  embed: async () => {
    const { embeddings } = await scripted.embed({ model: "mock", input: ["one", "two"] });
    return embeddings.map((vector) => vector.length);
  },
  models: async () => (await tiny.list()).models.map(({ model }) => model),
  show: async () => (await tiny.show({ model })).capabilities,
});
