import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { LMWIRE, REPOSITORY } from "./workers.js";

test("README.md shows a program that runs", async () => {
  const client = join(REPOSITORY, "clients/node");
  const program = readFileSync(join(client, "test/readme.ts"), "utf8");
  assert(readFileSync(join(client, "README.md"), "utf8").includes(`\`\`\`ts\n${program}\`\`\``));

  const env = { ...process.env, LMWIRE_WORKER: JSON.stringify([LMWIRE, "worker"]) };
  const compiled = fileURLToPath(new URL("readme.js", import.meta.url));
  const { stdout } = await promisify(execFile)(process.execPath, [compiled], { env });
  assert(stdout.trim());
});
