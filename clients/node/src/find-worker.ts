import { accessSync, constants, realpathSync, statSync } from "node:fs";
import { delimiter, dirname, isAbsolute, join } from "node:path";
import { StartFailed } from "./errors.js";
import { VERSION } from "./version.js";

/** Longest wait for a worker that is downloaded first, in milliseconds. */
const DOWNLOAD_TIMEOUT_MS = 600_000;
/** What uvx installs for this machine's models. */
const PACKAGES = `lmwire[${process.platform === "darwin" ? "worker" : "cpu"}]==${VERSION}`;
/** Options with which Node runs code that is no file: of the command line, of stdin, or typed. */
const WITHOUT_SCRIPT = /^(-e|-p|-pe|-i|-|--eval|--print|--interactive)(=|$)/;

/** A worker that was found. */
export interface FoundWorker {
  command: string[];
  /** Where it was found, for a message. */
  place: string;
  /** Whether the command may lead to another machine. */
  isWholeCommand?: boolean;
  /** Longest wait for the first reply, if it is longer than usual. */
  startTimeoutMs?: number;
}

/** Settings of the search. */
export interface SearchOptions {
  /**
   * Whether uvx may run the package lmwire of the package index, if no other worker is found. Whoever owns that name there
   * runs code with your rights. lmwire is not published yet, so nobody of this project owns it.
   */
  uvx?: boolean;
}

/**
 * Return the command that starts a worker. These places are tried in order: a folder `lmwire` beside the program,
 * `$LMWIRE_WORKER`, `lmwire` on PATH, and, if the options allow it, `uvx`, which downloads it.
 *
 * @param env - The environment of the worker.
 * @param options - Settings of the search.
 * @throws StartFailed if there is none.
 */
export function findWorker(env: NodeJS.ProcessEnv = process.env, { uvx = false }: SearchOptions = {}): FoundWorker {
  const installed = besideProgram() ?? fromVariable(env.LMWIRE_WORKER) ?? onPath(env);
  const found = installed ?? (uvx ? byUvx(env) : undefined);
  if (found) return found;
  const remedy = uvx ? "install uv for the option uvx" : "allow a download with the option uvx";
  throw new StartFailed(`no worker found: put lmwire on PATH, name a worker in $LMWIRE_WORKER, or ${remedy}`);
}

/** Return the worker that is shipped with the program: an app's executable, or a script that Node runs. */
function besideProgram(): FoundWorker | undefined {
  const { resourcesPath } = process as { resourcesPath?: string };
  const programs = [mainScript(), process.execPath].filter((program) => program !== undefined);
  const folders = [...programs.map(realFolder), resourcesPath].filter((folder) => folder !== undefined);
  const program = folders.map((folder) => join(folder, "lmwire", executable("lmwire"))).find((path) => isFile(path));
  return program ? { command: [program, "worker"], place: program } : undefined;
}

/**
 * Return the script that Node was started with. Other first arguments name what the program works on: the document of an
 * Electron app, or a file after `-e CODE` or `-`. A program beside those must not run.
 */
function mainScript(): string | undefined {
  const script = process.argv[1];
  const isScript = !process.versions.electron && !process.execArgv.some((option) => WITHOUT_SCRIPT.test(option));
  return script && isScript && isAbsolute(script) ? script : undefined; // Node makes the path of a script absolute
}

function realFolder(program: string): string | undefined {
  try {
    return dirname(realpathSync(program));
  } catch {
    return undefined;
  }
}

/** Return the worker of the variable: a program, or a whole command as a JSON list. */
function fromVariable(value: string | undefined): FoundWorker | undefined {
  if (!value) return undefined;
  const place = "$LMWIRE_WORKER";
  if (!value.trimStart().startsWith("[")) return { command: [value, "worker"], place };
  try {
    const command: unknown = JSON.parse(value);
    if (Array.isArray(command) && command.length && command.every((word) => typeof word === "string")) {
      return { command, place, isWholeCommand: true };
    }
  } catch {}
  throw new StartFailed(`${place} must be a program, or a command as a JSON list of strings`);
}

function onPath(env: NodeJS.ProcessEnv): FoundWorker | undefined {
  const program = lookUp("lmwire", env);
  return program ? { command: [program, "worker"], place: program } : undefined;
}

function byUvx(env: NodeJS.ProcessEnv): FoundWorker | undefined {
  const program = lookUp("uvx", env);
  const command = program ? [program, "--from", PACKAGES, "lmwire", "worker"] : undefined;
  return command && { command, place: `uvx ${PACKAGES}`, startTimeoutMs: DOWNLOAD_TIMEOUT_MS };
}

/** Return a program of PATH. Empty and relative entries mean the working directory, and are skipped. */
function lookUp(name: string, env: NodeJS.ProcessEnv): string | undefined {
  const folders = (env.PATH ?? "")
    .split(delimiter)
    .filter((folder) => folder.startsWith("/") || /^[A-Za-z]:/.test(folder));
  return folders.map((folder) => join(folder, executable(name))).find(isExecutable);
}

function executable(name: string): string {
  return process.platform === "win32" ? `${name}.exe` : name;
}

function isExecutable(path: string): boolean {
  return isFile(path, constants.X_OK);
}

function isFile(path: string, access = constants.F_OK): boolean {
  try {
    accessSync(path, access);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}
