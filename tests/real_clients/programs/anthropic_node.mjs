// Anthropic's client for Node. Arguments: URLs of the built-in model's server and of the scripted one.
import Anthropic from "@anthropic-ai/sdk";

const [tiny, scripted] = process.argv.slice(2).map(
  (baseURL) => new Anthropic({ baseURL, apiKey: "any", maxRetries: 0 }),
);
const asked = { model: "builtin:tiny", max_tokens: 200, messages: [{ role: "user", content: "Who are you?" }] };
const input_schema = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
const textOf = ({ content }) => content.filter(({ type }) => type === "text").map(({ text }) => text).join("");

await run({
  message: async () => {
    const message = await tiny.messages.create(asked);
    return { text: textOf(message), reason: message.stop_reason, tokens: message.usage.output_tokens };
  },
  stream: async () => {
    const stream = tiny.messages.stream(asked);
    let deltas = 0;
    stream.on("text", () => { deltas += 1; });
    const message = await stream.finalMessage();
    return { text: textOf(message), deltas, tokens: message.usage.output_tokens };
  },
  count: async () => {
    const { model, messages } = asked;
    return (await tiny.messages.countTokens({ model, messages })).input_tokens;
  },
  tools: async () => {
    const weather = {
      type: "custom", name: "weather", description: "Get the weather of a city.", input_schema,
      parse: (input) => input, run: ({ city }) => `21 degrees in ${city}`,
    };
    const messages = [{ role: "user", content: "The weather in Rome?" }];
    return textOf(await scripted.beta.messages.toolRunner({ model: "mock", max_tokens: 200, messages, tools: [weather] }));
  },
  thinking: async () => {
    const messages = [{ role: "user", content: "think aloud" }];
    const thinking = { type: "enabled", budget_tokens: 1024 };
    const message = await scripted.messages.create({ model: "mock", max_tokens: 2000, messages, thinking });
    return { text: textOf(message), thinking: message.content[0].thinking };
  },
});
