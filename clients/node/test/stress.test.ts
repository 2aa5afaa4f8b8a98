import assert from "node:assert/strict";
import { test } from "node:test";
import { startMock } from "./workers.js";

const REQUESTS = 1000;
const AT_A_TIME = 32;

/** A small generator of repeatable numbers between 0 and 1: Mulberry32, https://gist.github.com/tommyettinger/46a874533244883189143505d203312c */
function random(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

test("1,000 chats, 32 at a time, with random cancels, leave nothing behind", async (t) => {
  const worker = await startMock(t);
  const controller = new AbortController();
  const next = random(1);
  const resources = process.getActiveResourcesInfo().length;
  let left = REQUESTS;
  let cancelled = 0;
  const run = async (): Promise<void> => {
    while (left-- > 0) {
      const words = Array.from({ length: 1 + Math.floor(next() * 20) }, (_, index) => `w${index}`).join(" ");
      const stopAt = next() < 0.3 ? Math.floor(next() * 5) : Number.POSITIVE_INFINITY;
      const stream = worker.chat(words, {}, { signal: controller.signal });
      let count = 0;
      for await (const _ of stream.text()) if (count++ === stopAt) break;
      if (count > stopAt) cancelled++;
      else assert.equal((await stream.result()).text, words);
    }
  };
  await Promise.all(Array.from({ length: AT_A_TIME }, run));
  await worker.clearCache();
  assert(cancelled > REQUESTS / 10);
  const { requests } = await worker.stats();
  assert.equal(requests.accepted, REQUESTS + 2);
  assert.equal(requests.active + requests.queued, 0);
  assert.equal(worker.inFlight, 0);
  assert(process.getActiveResourcesInfo().length <= resources);
});
