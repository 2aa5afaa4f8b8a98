import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { fileURLToPath } from "node:url";
import { type StartOptions, Worker } from "../src/index.js";

/** The root of the repository, from dist/test. */
export const REPOSITORY = fileURLToPath(new URL("../../../../", import.meta.url));
const IN_VENV = join(REPOSITORY, ".venv/bin/lmwire");
/** The program, of this repository or of PATH. */
export const LMWIRE = existsSync(IN_VENV) ? IN_VENV : "lmwire";

/** Start a worker that ends with the test. */
export async function start(test: TestContext, args: string[], options: StartOptions = {}): Promise<Worker> {
  const worker = await Worker.start({ command: [LMWIRE, ...args], ...options });
  test.after(() => worker.close());
  return worker;
}

/** Start a mock with a loaded model. */
export async function startMock(test: TestContext, args: string[] = [], options: StartOptions = {}): Promise<Worker> {
  const worker = await start(test, ["mock", ...args], options);
  await worker.load("mock");
  return worker;
}

/** Start a mock with a fault, and a loaded model. */
export function startFaulty(test: TestContext, fault: string, options?: StartOptions): Promise<Worker> {
  return startMock(test, ["--fault", fault], options);
}

/** Start a mock that follows rules. */
export function startScenario(test: TestContext, ...rules: object[]): Promise<Worker> {
  return startMock(test, ["--scenario", scenarioFile(test, ...rules)]);
}

/** Write a file with rules. It is removed with the test. */
export function scenarioFile(test: TestContext, ...rules: object[]): string {
  const file = join(folderOf(test), "scenario.json");
  writeFileSync(file, JSON.stringify({ rules }));
  return file;
}

/** Return a folder that is removed with the test. */
export function folderOf(test: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), "lmwire-node-"));
  test.after(() => rmSync(folder, { recursive: true }));
  return folder;
}

/** Read an answer to its end, and return its text and the error that ended it. */
export async function read(worker: Worker, prompt: string): Promise<{ text: string; error?: unknown }> {
  let text = "";
  try {
    for await (const part of worker.chat(prompt).text()) text += part;
    return { text };
  } catch (error) {
    return { text, error };
  }
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
