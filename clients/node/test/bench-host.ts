// Measures this package for `lmwire bench hosts`, which builds and starts it: node bench-host.js STREAMS COMMAND...
//
// It starts the command as a worker. It prints the time to the first token, and then how many events come in how long.

import { Worker } from "../src/index.js";

const [streams, ...command] = process.argv.slice(2);
const started = performance.now();
const worker = await Worker.start({ command });
await worker.load("mock");
let firstTokenMs: number | undefined;
for await (const event of worker.generate("first")) {
  if (event.event === "token") firstTokenMs ??= performance.now() - started;
}
const began = performance.now();
const counts = await Promise.all(Array.from({ length: Number(streams) }, count));
const seconds = (performance.now() - began) / 1000;
await worker.close();
const events = counts.reduce((sum, tokens) => sum + tokens, 0);
console.log(JSON.stringify({ first_token_ms: firstTokenMs, events, seconds }));

/** Read a stream, and return the number of its tokens. */
async function count(): Promise<number> {
  let tokens = 0;
  for await (const event of worker.generate("burst")) {
    if (event.event === "token") tokens += event.token_ids.length;
  }
  return tokens;
}
