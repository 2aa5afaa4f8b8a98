import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { fileURLToPath } from "node:url";
import type * as vscode from "vscode";
import { type EditorClasses, Provider, type Settings } from "../src/provider.js";
import { Workers } from "../src/workers.js";

// From dist/test.
const IN_VENV = fileURLToPath(new URL("../../../../.venv/bin/lmwire", import.meta.url));
/** The program, of this repository or of PATH. */
export const LMWIRE = existsSync(IN_VENV) ? IN_VENV : "lmwire";

export class TextPart {
  constructor(readonly value: string) {}
}

export class ToolCallPart {
  constructor(
    readonly callId: string,
    readonly name: string,
    readonly input: object,
  ) {}
}

export class CancellationError extends Error {}

/** Stand-ins for the editor's classes. */
export const CLASSES = {
  CancellationError,
  LanguageModelTextPart: TextPart,
  LanguageModelToolCallPart: ToolCallPart,
} as unknown as EditorClasses;

/** A cancellation token that a test cancels. */
export class Token {
  readonly #listeners = new Set<() => void>();
  isCancellationRequested = false;

  onCancellationRequested = (listener: () => void) => {
    this.#listeners.add(listener);
    return { dispose: () => this.#listeners.delete(listener) };
  };

  cancel(): void {
    this.isCancellationRequested = true;
    for (const listener of this.#listeners) listener();
  }

  /** The number of listeners that were not removed. */
  get listeners(): number {
    return this.#listeners.size;
  }

  get asToken(): vscode.CancellationToken {
    return this as unknown as vscode.CancellationToken;
  }
}

/** A provider, its workers, and what it has logged. */
export interface Scene {
  provider: Provider;
  workers: Workers;
  log: string[];
}

/** Return a provider whose workers end with the test. */
export function provide(test: TestContext, args: string[], models: Settings["models"] = []): Scene {
  const log: string[] = [];
  const write = (line: string) => log.push(line);
  const command = [LMWIRE, ...args];
  const workers = new Workers(() => ({ command }), write);
  test.after(() => workers.close());
  return { provider: new Provider(CLASSES, workers, () => ({ command, models, uvx: false }), write), workers, log };
}

/** Return the options of a mock that follows rules. */
export function scenario(test: TestContext, ...rules: object[]): string[] {
  const folder = mkdtempSync(join(tmpdir(), "lmwire-vscode-"));
  test.after(() => rmSync(folder, { recursive: true }));
  const file = join(folder, "scenario.json");
  writeFileSync(file, JSON.stringify({ rules }));
  return ["mock", "--scenario", file];
}

/** Return a description of a model, of which a request needs only the id. */
export function model(id: string): vscode.LanguageModelChatInformation {
  return { id, name: id, family: id, version: "1", maxInputTokens: 1000, maxOutputTokens: 100, capabilities: {} };
}

/** Return a message of the editor. */
export function message(role: 1 | 2, ...content: unknown[]): vscode.LanguageModelChatRequestMessage {
  return { role, content, name: undefined };
}

export interface Asked {
  token?: Token;
  model?: string;
  options?: Partial<vscode.ProvideLanguageModelChatResponseOptions>;
  onPart?: (part: unknown) => void;
}

/** Ask a provider, and return the parts of its answer. */
export async function ask(
  provider: vscode.LanguageModelChatProvider,
  messages: vscode.LanguageModelChatRequestMessage[],
  { token = new Token(), model: id = "mock", options = {}, onPart }: Asked = {},
): Promise<unknown[]> {
  const parts: unknown[] = [];
  const report = (part: unknown) => {
    parts.push(part);
    onPart?.(part);
  };
  await provider.provideLanguageModelChatResponse(
    model(id),
    messages,
    { toolMode: 1, ...options } as vscode.ProvideLanguageModelChatResponseOptions,
    { report },
    token.asToken,
  );
  return parts;
}

/** Return the text of an answer's parts. */
export function textOf(parts: unknown[]): string {
  return parts.map((part) => (part instanceof TextPart ? part.value : "")).join("");
}

/** Return whether a process exists. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
