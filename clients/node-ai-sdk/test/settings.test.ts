import assert from "node:assert/strict";
import { test } from "node:test";
import type { LanguageModelV4CallOptions, LanguageModelV4FunctionTool, SharedV4Warning } from "@ai-sdk/provider";
import { toChatFields } from "../src/chat-fields.js";

const LOOK: LanguageModelV4FunctionTool = { type: "function", name: "look", inputSchema: { type: "object" } };

function convert(options: Partial<LanguageModelV4CallOptions>) {
  return toChatFields({ prompt: [], ...options });
}

function features(warnings: SharedV4Warning[]) {
  return warnings.map((warning) => warning.type === "unsupported" && warning.feature);
}

test("settings are fields of the protocol", () => {
  const { fields, warnings } = convert({
    maxOutputTokens: 9,
    temperature: 0.5,
    topP: 0.9,
    topK: 40,
    presencePenalty: 0.1,
    frequencyPenalty: 0.2,
    seed: 7,
    stopSequences: ["\n"],
    headers: { "user-agent": "ai/7" },
    responseFormat: { type: "json", schema: { type: "object" } },
    tools: [{ ...LOOK, description: "Look.", strict: true }],
    toolChoice: { type: "tool", toolName: "look" },
    providerOptions: { lmwire: { min_p: 0.1 }, openai: { user: "ada" } },
  });
  assert.deepEqual(fields, {
    max_tokens: 9,
    temperature: 0.5,
    top_p: 0.9,
    top_k: 40,
    presence_penalty: 0.1,
    frequency_penalty: 0.2,
    seed: 7,
    stop: ["\n"],
    format: { type: "json_schema", schema: { type: "object" } },
    tools: [{ function: { name: "look", description: "Look.", parameters: { type: "object" }, strict: true } }],
    tool_choice: { name: "look" },
    min_p: 0.1,
  });
  assert.deepEqual(warnings, []);
});

test("absent settings are no fields", () => {
  assert.deepEqual(convert({ stopSequences: [], tools: [], reasoning: "provider-default" }).fields, {});
});

test("JSON without a schema is any object", () => {
  assert.deepEqual(convert({ responseFormat: { type: "json" } }).fields, { format: { type: "json_object" } });
});

test("the effort of reasoning is passed on, and an option of the provider wins", () => {
  assert.deepEqual(convert({ reasoning: "none" }).fields, { reasoning: "off" });
  assert.deepEqual(convert({ reasoning: "low" }).fields, { reasoning: "on", reasoning_effort: "low" });
  assert.deepEqual(convert({ reasoning: "max" }).fields, { reasoning: "on", reasoning_effort: "max" });
  const providerOptions = { lmwire: { reasoning_effort: "high" } };
  assert.deepEqual(convert({ reasoning: "low", providerOptions }).fields, {
    reasoning: "on",
    reasoning_effort: "high",
  });
});

test("what has no effect is warned of", () => {
  const lmwire = { cache: "off" };
  const { fields, warnings } = convert({
    prompt: [{ role: "user", content: [{ type: "text", text: "?", providerOptions: { lmwire } }] }],
    headers: { "user-agent": "ai/7", "x-trace": "1" },
    responseFormat: { type: "json", name: "person", description: "A person." },
    tools: [
      { ...LOOK, inputExamples: [{ input: { at: "sea" } }] },
      { type: "provider", id: "openai.web_search", name: "search", args: {} },
    ],
  });
  assert.equal(fields.tools?.length, 1);
  assert.deepEqual(features(warnings), [
    "headers",
    "responseFormat.name",
    "responseFormat.description",
    "inputExamples of the tool look",
    "the tool openai.web_search",
    "providerOptions.lmwire of a message, a part or a tool",
  ]);
  for (const warning of warnings) assert(warning.type === "unsupported" && warning.details);
});

test("several answers to one call are refused", () => {
  assert.throws(() => convert({ providerOptions: { lmwire: { n: 2 } } }), {
    name: "AI_UnsupportedFunctionalityError",
    message: /providerOptions.lmwire.n.*make a call for each answer/,
  });
});
