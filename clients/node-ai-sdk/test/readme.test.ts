import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const PACKAGE = new URL("../../", import.meta.url);
const IN_VENV = fileURLToPath(new URL("../../.venv/bin/lmwire", PACKAGE));
const LMWIRE = existsSync(IN_VENV) ? IN_VENV : "lmwire";

test("README.md shows a program that runs", async () => {
  const program = readFileSync(new URL("test/readme.ts", PACKAGE), "utf8");
  assert(readFileSync(new URL("README.md", PACKAGE), "utf8").includes(`\`\`\`ts\n${program}\`\`\``));

  const env = { ...process.env, LMWIRE_WORKER: JSON.stringify([LMWIRE, "worker"]) };
  const compiled = fileURLToPath(new URL("readme.js", import.meta.url));
  const { stdout } = await promisify(execFile)(process.execPath, [compiled], { env });
  assert(stdout.trim());
});
