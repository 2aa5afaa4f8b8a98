import { streamText } from "ai";
import { createLmwire } from "lmwire-ai-sdk";

await using lmwire = createLmwire();
const result = streamText({ model: lmwire("builtin:tiny"), prompt: "Who are you?" });
for await (const text of result.textStream) process.stdout.write(text);
