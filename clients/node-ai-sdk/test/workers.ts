import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { fileURLToPath } from "node:url";
import { createLmwire, type LmwireProvider } from "../src/index.js";

const IN_VENV = fileURLToPath(new URL("../../../../.venv/bin/lmwire", import.meta.url));
const LMWIRE = existsSync(IN_VENV) ? IN_VENV : "lmwire";

globalThis.AI_SDK_LOG_WARNINGS = false; // the tests read them from the results

/** Return a provider whose workers end with the test, or with the file's tests. */
export function provide(test: { after(close: () => Promise<void>): void }, ...args: string[]): LmwireProvider {
  const lmwire = createLmwire({ start: { command: [LMWIRE, ...args] } });
  test.after(() => lmwire.close());
  return lmwire;
}

/** Return a provider of mocks that follow rules. */
export function script(test: TestContext, ...rules: object[]): LmwireProvider {
  const folder = mkdtempSync(join(tmpdir(), "lmwire-ai-"));
  test.after(() => rmSync(folder, { recursive: true }));
  const file = join(folder, "scenario.json");
  writeFileSync(file, JSON.stringify({ rules }));
  return provide(test, "mock", "--scenario", file);
}
