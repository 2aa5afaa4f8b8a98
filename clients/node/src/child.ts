import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import type { Socket } from "node:net";
import type { Readable } from "node:stream";
import { StringDecoder } from "node:string_decoder";

/** Lines of stderr that are kept for error messages. */
const STDERR_LINES = 64;
const STDERR_LINE_CHARACTERS = 1000;
/** Longest wait for the end of stdout after the process has exited, in milliseconds. A grandchild may hold the pipe. */
const AFTER_EXIT_MS = 1000;

/** How a worker is started. */
export interface SpawnOptions {
  /** The program and its arguments. */
  command: readonly string[];
  cwd?: string;
  env?: NodeJS.ProcessEnv;
  /** Called with each line that the worker writes to stderr. */
  onStderr?: (line: string) => void;
}

/** A child process in a process group of its own, with its three pipes. */
export class Child {
  readonly #process: ChildProcessWithoutNullStreams;
  /** Resolves when the process has exited, or could not be started. */
  readonly exited: Promise<void>;
  /** Resolves when stdout has ended, at the latest a second after the process. */
  readonly outputEnded: Promise<void>;
  /** Why the process could not be started. */
  startError: Error | undefined;
  #lines: string[] = [];
  #partial = "";

  constructor(options: SpawnOptions, onOutput: (chunk: Buffer) => void) {
    const [program = "", ...args] = options.command;
    // A group of its own: signals reach the worker and its children, and the terminal's Ctrl-C does not.
    this.#process = spawn(program, args, {
      stdio: ["pipe", "pipe", "pipe"],
      detached: true,
      windowsHide: true,
      ...(options.cwd !== undefined && { cwd: options.cwd }),
      ...(options.env !== undefined && { env: options.env }),
    });
    const { stdin, stdout, stderr } = this.#process;
    this.exited = new Promise((resolve) => {
      this.#process.once("exit", () => {
        // Processes that it has started and left. The group's id still belongs to them: the system assigns ids in turn.
        this.#signalGroup("SIGKILL");
        resolve();
      });
      this.#process.once("error", (error) => {
        this.startError ??= error;
        if (this.#process.pid === undefined) resolve();
      });
    });
    this.outputEnded = new Promise((resolve) => {
      stdout.once("close", resolve);
      this.exited.then(() => this.#closeAfterExit(stdout));
    });
    stdin.on("error", () => {}); // the worker is ending: the end of stdout decides
    stdout.on("error", () => {}).on("data", onOutput);
    const decoder = new StringDecoder("utf8");
    stderr.on("error", () => {}).on("data", (chunk: Buffer) => this.#keepLines(decoder.write(chunk), options.onStderr));
    this.exited.then(() => this.#closeAfterExit(stderr));
  }

  #closeAfterExit(pipe: Readable): void {
    if (this.pid === undefined) pipe.destroy();
    else setTimeout(() => pipe.destroy(), AFTER_EXIT_MS);
  }

  get pid(): number | undefined {
    return this.#process.pid;
  }

  get hasExited(): boolean {
    return this.#process.exitCode !== null || this.#process.signalCode !== null || this.pid === undefined;
  }

  /** Return how the process ended, for a message. */
  describeExit(): string {
    const { exitCode, signalCode } = this.#process;
    if (signalCode !== null) return `signal ${signalCode}`;
    return exitCode === null ? "it still runs" : `exit code ${exitCode}`;
  }

  /** The last lines of stderr. */
  get stderr(): readonly string[] {
    return this.#partial ? [...this.#lines, this.#partial] : this.#lines;
  }

  /** Write a line to stdin, without waiting. */
  write(line: string): void {
    if (this.#process.stdin.writable) this.#process.stdin.write(line);
  }

  closeStdin(): void {
    this.#process.stdin.end();
  }

  /** Send a signal to the process group. After the exit its id can belong to other processes. */
  signal(signal: NodeJS.Signals): void {
    if (!this.hasExited) this.#signalGroup(signal);
  }

  #signalGroup(signal: NodeJS.Signals): void {
    try {
      process.kill(-this.pid!, signal);
    } catch {
      this.#process.kill(signal); // Windows has no groups
    }
  }

  /** Let the process keep this program alive, or not. */
  hold(isHeld: boolean): void {
    const { stdin, stdout, stderr } = this.#process;
    for (const handle of [this.#process, stdin as Socket, stdout as Socket, stderr as Socket]) {
      if (isHeld) handle.ref();
      else handle.unref();
    }
  }

  #keepLines(text: string, onLine?: (line: string) => void): void {
    const lines = (this.#partial + text).split("\n");
    this.#partial = lines.pop()!.slice(0, STDERR_LINE_CHARACTERS);
    for (const line of lines) {
      this.#lines.push(line.slice(0, STDERR_LINE_CHARACTERS));
      onLine?.(line);
    }
    this.#lines = this.#lines.slice(-STDERR_LINES);
  }
}

/** Return whether a promise is fulfilled within a time. */
export async function within(promise: Promise<unknown>, milliseconds: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(() => resolve(false), milliseconds);
  });
  try {
    return await Promise.race([promise.then(() => true), late]);
  } finally {
    clearTimeout(timer);
  }
}
