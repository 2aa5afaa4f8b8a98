// Answers each line of stdin with the built-in model. A test ships this script beside a bundle.
//
// It first prints the worker's process id and version.

import { createInterface } from "node:readline";
import { Worker } from "lmwire";

const worker = await Worker.start();
await worker.load("builtin:tiny");
console.log(worker.pid, worker.hello.worker);
for await (const line of createInterface({ input: process.stdin })) {
  for await (const text of worker.chat(line, { max_tokens: 20, temperature: 0 }).text()) process.stdout.write(text);
  process.stdout.write("\n");
}
await worker.close();
