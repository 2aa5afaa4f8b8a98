import assert from "node:assert/strict";
import { test } from "node:test";
import type * as vscode from "vscode";
import { toFields, toMessages, toText } from "../src/messages.js";
import { message, TextPart, ToolCallPart } from "./support.js";

const RESULT = { callId: "c1", content: [new TextPart("30"), new TextPart("degrees")] };

test("texts keep their roles and their order", () => {
  const messages = [message(1, new TextPart("Hi"), new TextPart(" there")), message(2, new TextPart("Hello"))];
  assert.deepEqual(toMessages(messages), [
    {
      role: "user",
      content: [
        { type: "text", text: "Hi" },
        { type: "text", text: " there" },
      ],
    },
    { role: "assistant", content: "Hello" },
  ]);
});

test("calls and their results become messages of the assistant and of tools, before the user's next words", () => {
  const call = new ToolCallPart("c1", "weather", { city: "Rome" });
  assert.deepEqual(toMessages([message(2, call), message(1, new TextPart("So?"), RESULT)]), [
    { role: "assistant", tool_calls: [{ id: "c1", name: "weather", arguments: '{"city":"Rome"}' }] },
    { role: "tool", tool_call_id: "c1", content: "30\ndegrees" },
    { role: "user", content: [{ type: "text", text: "So?" }] },
  ]);
});

test("images are sent as data, and JSON as text", () => {
  const image = { data: new Uint8Array([1, 2, 3]), mimeType: "image/png" };
  const json = { data: new TextEncoder().encode('{"a":1}'), mimeType: "application/json" };
  assert.deepEqual(toMessages([message(1, image, json)]), [
    {
      role: "user",
      content: [
        { type: "image", media: { data: "AQID" } },
        { type: "text", text: '{"a":1}' },
      ],
    },
  ]);
});

test("parts that the editor keeps for itself are left out", () => {
  const state = { data: new Uint8Array([1]), mimeType: "stateful_marker" };
  assert.deepEqual(toMessages([message(2, state, new TextPart("Hello"))]), [{ role: "assistant", content: "Hello" }]);
});

test("an empty message of the user stays a message", () => {
  assert.deepEqual(toMessages([message(1)]), [{ role: "user", content: "" }]);
});

test("tools, a demanded call and known options become fields", () => {
  const tools = [{ name: "weather", description: "The weather.", inputSchema: { type: "object" } }];
  const modelOptions = { temperature: 0.5, new_option: 1 };
  const options = { tools, toolMode: 2, modelOptions } as vscode.ProvideLanguageModelChatResponseOptions;
  assert.deepEqual(toFields(options), {
    temperature: 0.5,
    tools: [
      {
        type: "function",
        function: { name: "weather", description: "The weather.", parameters: { type: "object" } },
      },
    ],
    tool_choice: "required",
  });
  assert.deepEqual(toFields({ toolMode: 2 } as vscode.ProvideLanguageModelChatResponseOptions), {});
});

test("the text of a message includes calls and results, for counting", () => {
  const call = new ToolCallPart("c1", "weather", { city: "Rome" });
  assert.equal(toText(message(2, new TextPart("Let me see."), call)), 'Let me see.\n{"city":"Rome"}');
  assert.equal(toText(message(1, RESULT)), "30\ndegrees");
});
