import assert from "node:assert/strict";
import { test } from "node:test";
import type { LanguageModelV4FilePart, LanguageModelV4Prompt, SharedV4FileData } from "@ai-sdk/provider";
import { toMessages } from "../src/messages.js";

type AssistantContent = Extract<LanguageModelV4Prompt[number], { role: "assistant" }>["content"];

const BYTES = new Uint8Array([0x89, 0x50, 0x4e, 0x47]);
const BASE64 = "iVBORw==";

function file(mediaType: string, data: SharedV4FileData): LanguageModelV4FilePart {
  return { type: "file", mediaType, data };
}

function ofUser(...content: Extract<LanguageModelV4Prompt[number], { role: "user" }>["content"]) {
  return toMessages([{ role: "user", content }]).messages[0]?.content;
}

function result(output: Extract<AssistantContent[number], { type: "tool-result" }>["output"]) {
  return { type: "tool-result" as const, toolCallId: "1", toolName: "look", output };
}

for (const [name, data] of [
  ["bytes", { type: "data", data: BYTES }],
  ["Base64", { type: "data", data: BASE64 }],
] as const) {
  test(`an image or a sound comes as ${name}`, () => {
    for (const mediaType of ["image", "image/*", "image/png"]) {
      assert.deepEqual(ofUser(file(mediaType, data)), [{ type: "image", media: { data: BASE64 } }]);
    }
    assert.deepEqual(ofUser(file("audio/wav", data)), [{ type: "audio", media: { data: BASE64 } }]);
  });
}

test("an address is that which the caller wrote", () => {
  const url = new URL("http://example.com");
  assert.deepEqual(ofUser(file("image", { type: "url", url })), [
    { type: "image", media: { url: "http://example.com/" } },
  ]);
  assert.deepEqual(ofUser(file("image", { type: "url", url, originalUrl: "http://example.com" })), [
    { type: "image", media: { url: "http://example.com" } },
  ]);
});

test("a file of text is text, on lines of its own", () => {
  const content = ofUser(
    { type: "text", text: "Sum up:" },
    file("text/markdown", { type: "text", text: "# Sea" }),
    file("text/plain", { type: "data", data: Buffer.from("salt") }),
    file("text/plain", { type: "data", data: "c2FsdA==" }),
  );
  assert.deepEqual(
    content,
    ["Sum up:\n", "# Sea\n", "salt\n", "salt"].map((text) => ({ type: "text", text })),
  );
});

test("other files are refused, with what to do", () => {
  const reference = { openai: "file-1" };
  assert.throws(() => ofUser(file("image", { type: "reference", reference })), {
    name: "AI_UnsupportedFunctionalityError",
    message: /data type reference.*give the file's data or URL/,
  });
  assert.throws(() => ofUser(file("application/pdf", { type: "data", data: BYTES })), {
    name: "AI_UnsupportedFunctionalityError",
    message: /application\/pdf.*give its text/,
  });
});

test("an assistant's text, reasoning and calls are one message", () => {
  const content: AssistantContent = [
    { type: "reasoning", text: "Hm." },
    { type: "text", text: "Let me " },
    { type: "text", text: "look." },
    { type: "tool-call", toolCallId: "1", toolName: "look", input: { at: "sea" } },
  ];
  assert.deepEqual(toMessages([{ role: "assistant", content }]), {
    messages: [
      {
        role: "assistant",
        reasoning: "Hm.",
        content: "Let me look.",
        tool_calls: [{ id: "1", name: "look", arguments: '{"at":"sea"}' }],
      },
    ],
    warnings: [],
  });
});

test("the result of another provider's own tool follows its call", () => {
  const content: AssistantContent = [
    { type: "tool-call", toolCallId: "1", toolName: "look", input: {}, providerExecuted: true },
    result({ type: "text", value: "blue" }),
    { type: "text", text: "It is blue." },
  ];
  assert.deepEqual(toMessages([{ role: "assistant", content }]).messages, [
    { role: "assistant", tool_calls: [{ id: "1", name: "look", arguments: "{}" }] },
    { role: "tool", tool_call_id: "1", name: "look", content: "blue" },
    { role: "assistant", content: "It is blue." },
  ]);
});

test("parts of other providers are left out with a warning", () => {
  const { messages, warnings } = toMessages([
    {
      role: "assistant",
      content: [
        { type: "custom", kind: "openai.compaction" },
        { type: "reasoning-file", mediaType: "image/png", data: { type: "data", data: BYTES } },
      ],
    },
    { role: "tool", content: [{ type: "tool-approval-response", approvalId: "1", approved: true }] },
  ]);
  assert.deepEqual(messages, [{ role: "assistant", content: "" }]);
  assert.deepEqual(
    warnings.map((warning) => warning.type === "unsupported" && warning.feature),
    ["the part openai.compaction", "reasoning-file", "tool-approval-response"],
  );
});

test("an image of the assistant stays in its message", () => {
  const content: AssistantContent = [{ type: "text", text: "Here:" }, file("image/png", { type: "data", data: BYTES })];
  assert.deepEqual(toMessages([{ role: "assistant", content }]).messages, [
    {
      role: "assistant",
      content: [
        { type: "text", text: "Here:" },
        { type: "image", media: { data: BASE64 } },
      ],
    },
  ]);
});

test("the result of a tool is text, JSON or parts", () => {
  const contentOf = (output: Parameters<typeof result>[0]) =>
    toMessages([{ role: "tool", content: [result(output)] }]).messages[0]?.content;
  assert.equal(contentOf({ type: "text", value: "blue" }), "blue");
  assert.equal(contentOf({ type: "error-text", value: "no light" }), "no light");
  assert.equal(contentOf({ type: "json", value: { colour: "blue" } }), '{"colour":"blue"}');
  assert.equal(contentOf({ type: "error-json", value: [1] }), "[1]");
  assert.equal(contentOf({ type: "execution-denied" }), "The call was denied.");
  assert.equal(contentOf({ type: "execution-denied", reason: "Not at night." }), "Not at night.");
  const image = file("image/png", { type: "data", data: BYTES });
  assert.deepEqual(contentOf({ type: "content", value: [{ type: "text", text: "The sea:" }, image] }), [
    { type: "text", text: "The sea:" },
    { type: "image", media: { data: BASE64 } },
  ]);
  assert.throws(() => contentOf({ type: "content", value: [{ type: "custom" }] }), {
    name: "AI_UnsupportedFunctionalityError",
    message: /custom in the result of a tool.*return text/,
  });
});
