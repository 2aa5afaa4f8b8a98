import { Worker } from "lmwire";

await using worker = await Worker.start();
await worker.load("builtin:tiny");

for await (const text of worker.chat("Who are you?").text()) process.stdout.write(text);
