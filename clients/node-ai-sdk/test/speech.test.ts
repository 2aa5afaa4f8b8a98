import assert from "node:assert/strict";
import { test } from "node:test";
import { generateSpeech, transcribe } from "ai";
import { provide, script } from "./workers.js";

test("a recording becomes text with times", async (t) => {
  const lmwire = script(t, { match: { audio: "data" }, reply: { text: "Buy milk. And bread." } });
  const { text, segments, words, language, durationInSeconds, warnings } = await transcribe({
    model: lmwire.transcriptionModel("mock"),
    audio: new Uint8Array([1, 2, 3]),
    timestampGranularities: ["word"],
  });
  assert.equal(text, "Buy milk. And bread.");
  assert.deepEqual(segments, [
    { text: "Buy milk. ", startSecond: 0, endSecond: 2 },
    { text: "And bread.", startSecond: 2, endSecond: 4 },
  ]);
  assert.deepEqual(words?.[1], { text: "milk. ", startSecond: 1, endSecond: 2 });
  assert.deepEqual([language, durationInSeconds, warnings], ["en", 4, []]);
});

test("a text becomes a WAV file", async (t) => {
  const lmwire = provide(t, "mock");
  const { audio, warnings } = await generateSpeech({ model: lmwire.speechModel("mock"), text: "Buy milk." });
  assert.equal(audio.mediaType, "audio/wav");
  const wav = Buffer.from(audio.uint8Array);
  assert.equal(wav.length, 44 + 2 * 1600); // two words of 800 samples
  assert.equal(wav.readUInt32LE(4), wav.length - 8);
  assert.equal(wav.readUInt32LE(24), 8000);
  assert.deepEqual([...new Set(new Int16Array(Uint8Array.from(wav.subarray(44)).buffer))].sort(), [-8000, 8000]);
  assert.deepEqual(warnings, []);
});

test("a speech that is not as asked for is warned of", async (t) => {
  const lmwire = provide(t, "mock");
  const { warnings } = await generateSpeech({
    model: lmwire.speechModel("mock"),
    text: "1 2 3 4 5 6 7 8 9 10 11",
    outputFormat: "mp3",
    providerOptions: { lmwire: { max_seconds: 1 } },
  });
  assert.deepEqual(warnings, [
    { type: "unsupported", feature: "outputFormat", details: "the speech is WAV; convert it" },
    { type: "other", message: "the speech is incomplete, because of length" },
  ]);
});

test("the voice, its language and its manner reach the worker", async (t) => {
  const fields = { voice: "ada", language: "en", instructions: "calm", speed: 2 };
  const lmwire = script(t, { match: { cmd: "speak", fields }, reply: { text: "as asked for" } });
  const { audio } = await generateSpeech({ model: lmwire.speechModel("mock"), text: "?", ...fields });
  assert.equal(audio.uint8Array.length, 44 + 2 * 2400);
});
