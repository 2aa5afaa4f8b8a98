import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
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
  return provide(test, "mock", "--scenario", join(folderWith(test, rules), "scenario.json"));
}

/** Return a provider of mocks as `script` does, and a function that ends them and returns the commands they got. */
export function record(test: TestContext, ...rules: object[]) {
  const folder = folderWith(test, rules);
  const [commands, scenario] = [join(folder, "commands.jsonl"), join(folder, "scenario.json")];
  // The worker gets each line when it is in the file: it may end with the next one, and `tee` with it.
  const copy = 'while IFS= read -r line; do printf "%s\\n" "$line" >>"$0"; printf "%s\\n" "$line"; done';
  const copying = `mkfifo "$0.pipe"; exec 3<&0; ${copy} <&3 >"$0.pipe" 2>/dev/null & exec "$@" <"$0.pipe" 3<&-`;
  const command = ["sh", "-c", copying, commands, LMWIRE, "mock", "--scenario", scenario];
  const lmwire = createLmwire({ start: { command } });
  const end = async (): Promise<{ cmd: string }[]> => {
    await lmwire.close();
    return readFileSync(commands, "utf8")
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
  };
  return { lmwire, end };
}

/** Return a folder with the rules as scenario.json. It ends with the test. */
function folderWith(test: TestContext, rules: object[]): string {
  const folder = mkdtempSync(join(tmpdir(), "lmwire-ai-"));
  test.after(() => rmSync(folder, { recursive: true }));
  writeFileSync(join(folder, "scenario.json"), JSON.stringify({ rules }));
  return folder;
}
