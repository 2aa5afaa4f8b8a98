import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { fileURLToPath } from "node:url";
import type { StartOptions } from "lmwire";
import type { ChatEvent } from "../src/api.js";
import { ChatService } from "../src/chat-service.js";

const IN_VENV = fileURLToPath(new URL("../../../../.venv/bin/lmwire", import.meta.url));
/** The program, of this repository or of PATH. */
export const LMWIRE = existsSync(IN_VENV) ? IN_VENV : "lmwire";

/** A mock's rule: an answer that never ends by itself. */
export const FOREVER = { match: { last_message: "forever" }, reply: { text: "on ", then: "repeat", token_ms: 20 } };

/** Return a folder that is removed with the test. */
export function folderOf(test: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), "lmwire-electron-"));
  test.after(() => rmSync(folder, { recursive: true }));
  return folder;
}

/** A program that becomes a worker. */
export class Launcher {
  readonly program: string;

  /** Write the program. It runs the command with further arguments. */
  constructor(program: string, command: string[]) {
    this.program = program;
    const words = command.map((word) => `'${word}'`).join(" ");
    writeFileSync(program, `#!/bin/sh\necho $$ > "$0.pid"\nexec ${words} "$@"\n`);
    chmodSync(program, 0o755);
  }

  /** The process id of the latest worker. */
  get pid(): number {
    return Number(readFileSync(`${this.program}.pid`, "utf8"));
  }
}

/** Write the program of a mock that follows rules. */
export function writeMock(test: TestContext, ...rules: object[]): Launcher {
  const folder = folderOf(test);
  const scenario = join(folder, "scenario.json");
  writeFileSync(scenario, JSON.stringify({ rules }));
  return new Launcher(join(folder, "mock"), [LMWIRE, "mock", "--scenario", scenario]);
}

/** The events of a service, to wait for. */
export class Events {
  readonly seen: ChatEvent[] = [];
  #wake: (() => void) | undefined;

  readonly add = (event: ChatEvent): void => {
    this.seen.push(event);
    this.#wake?.();
  };

  /** Wait for the first event of a kind. */
  async first(type: ChatEvent["type"]): Promise<ChatEvent> {
    for (;;) {
      const found = this.seen.find((event) => event.type === type);
      if (found) return found;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  /** Return the events since the last call. Neighbouring texts are one. */
  take(): ChatEvent[] {
    const events: ChatEvent[] = [];
    for (const event of this.seen.splice(0)) {
      const last = events.at(-1);
      if (event.type === "text" && last?.type === "text") last.text += event.text;
      else if (event.type !== "progress") events.push({ ...event });
    }
    return events;
  }
}

/** Return a service that ends with the test, and its events. */
export function serve(test: TestContext, start: StartOptions): { service: ChatService; events: Events } {
  const events = new Events();
  const service = new ChatService(events.add, start);
  test.after(() => service.close());
  return { service, events };
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
