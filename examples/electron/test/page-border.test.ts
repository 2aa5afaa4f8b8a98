import assert from "node:assert/strict";
import { test } from "node:test";
import type { ChatService } from "../src/chat-service.js";
import { perform } from "../src/commands.js";
import { PAGE_URL, servePage } from "../src/page-files.js";

/** Perform commands, and return the calls of the service that they led to. */
function callsOf(...commands: unknown[]): unknown[][] {
  const calls: unknown[][] = [];
  const record = (name: string) => (value?: unknown) => void calls.push([name, value]);
  const service = { load: record("load"), chat: record("chat"), stop: record("stop") };
  for (const command of commands) perform(service as unknown as ChatService, command);
  return calls;
}

test("commands of the page reach the service", () => {
  const calls = callsOf({ type: "load", model: "m" }, { type: "chat", text: "t" }, { type: "stop" });
  assert.deepEqual(calls, [
    ["load", "m"],
    ["chat", "t"],
    ["stop", undefined],
  ]);
});

test("what is not a command is ignored", () => {
  const huge = "x".repeat((1 << 20) + 1);
  const wrong = [null, undefined, 1, "stop", [], {}, { type: "close" }, { type: "load" }, { type: "load", model: 1 }];
  const empty = [
    { type: "chat", text: "" },
    { type: "chat", text: huge },
    { type: "load", model: huge },
  ];
  assert.deepEqual(callsOf(...wrong, ...empty), []);
});

test("the page has a policy that allows its own files alone", async () => {
  const page = await servePage(PAGE_URL);
  assert.equal(page.status, 200);
  const policy = page.headers.get("content-security-policy")!;
  assert(policy.startsWith("default-src 'none'; script-src 'self'; style-src 'self';"), policy);
  assert(!policy.includes("unsafe"));
});

test("no other file is served", async () => {
  for (const path of ["main.js", "../package.json", "%2e%2e/package.json", "index.html/", ""]) {
    assert.equal((await servePage(`app://chat/${path}`)).status, 404, path);
  }
});
