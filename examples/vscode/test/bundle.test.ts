import assert from "node:assert/strict";
import { once } from "node:events";
import { createRequire } from "node:module";
import { test } from "node:test";
import type * as vscode from "vscode";
import { ask, CLASSES, isAlive, LMWIRE, message, TextPart, textOf } from "./support.js";

const require = createRequire(import.meta.url);

/** What the stand-in for the editor has received. */
class Editor {
  readonly lines: string[] = [];
  readonly commands = new Map<string, () => unknown>();
  readonly providers = new Map<string, vscode.LanguageModelChatProvider>();
  readonly settings: Record<string, unknown>;
  picked: string | undefined;
  isLogShown = false;
  changeSettings: (event: { affectsConfiguration: () => boolean }) => unknown = () => {};

  constructor(settings: Record<string, unknown>) {
    this.settings = settings;
  }

  /** Return the module `vscode` with as much as the extension uses. */
  module() {
    const disposable = { dispose() {} };
    return {
      ...CLASSES,
      EventEmitter: class {
        #listeners: Array<() => void> = [];
        event = (listener: () => void) => this.#listeners.push(listener);
        fire = () => {
          for (const listener of this.#listeners) listener();
        };
        dispose() {}
      },
      ProgressLocation: { Notification: 15 },
      window: {
        createOutputChannel: () => ({
          appendLine: (line: string) => this.lines.push(line),
          show: () => {
            this.isLogShown = true;
          },
          dispose() {},
        }),
        showQuickPick: async (items: Array<{ id: string }>) => items.find(({ id }) => id === this.picked),
        withProgress: (_options: object, task: () => unknown) => task(),
      },
      workspace: {
        getConfiguration: () => ({ get: (name: string, value: unknown) => this.settings[name] ?? value }),
        onDidChangeConfiguration: (listener: Editor["changeSettings"]) => {
          this.changeSettings = listener;
          return disposable;
        },
      },
      commands: {
        registerCommand: (name: string, run: () => unknown) => {
          this.commands.set(name, run);
          return disposable;
        },
      },
      lm: {
        registerLanguageModelChatProvider: (vendor: string, provider: vscode.LanguageModelChatProvider) => {
          this.providers.set(vendor, provider);
          return disposable;
        },
      },
    };
  }
}

/** Load the bundle as the editor does, with a stand-in for its module. */
function load(editor: Editor): { activate: (context: object) => void; deactivate: () => Promise<void> } {
  const loader = require("node:module") as { _load: (name: string, ...rest: unknown[]) => unknown };
  const original = loader._load;
  loader._load = (name, ...rest) => (name === "vscode" ? editor.module() : original(name, ...rest));
  try {
    return require("../extension.js");
  } finally {
    loader._load = original;
  }
}

test("the bundle offers models, loads one, answers, and ends its worker with the editor", async () => {
  const editor = new Editor({ command: [LMWIRE, "mock"], models: [{ name: "mock", contextLength: 8000 }] });
  const extension = load(editor);
  const context = { subscriptions: [] as object[] };
  extension.activate(context);
  const manifest = require("../../package.json").contributes;
  assert.deepEqual([...editor.providers.keys()], [manifest.languageModelChatProviders[0].vendor]);
  const declared = manifest.commands.map(({ command }: { command: string }) => command);
  assert.deepEqual([...editor.commands.keys()].sort(), declared.sort());
  assert.equal(context.subscriptions.length, 7);

  const provider = editor.providers.get("lmwire")!;
  editor.picked = "mock";
  await editor.commands.get("lmwire.pickModel")!();
  const pid = Number(editor.lines.join("\n").match(/loading in process (\d+)/)![1]);
  assert(isAlive(pid));
  const options = { modelOptions: { max_tokens: 2 } };
  assert.equal(textOf(await ask(provider, [message(1, new TextPart("to be"))], { options })), "to be");
  await editor.commands.get("lmwire.stopWorker")!();
  assert(!isAlive(pid));
  editor.commands.get("lmwire.showLog")!();
  assert(editor.isLogShown);

  assert.equal(textOf(await ask(provider, [message(1, new TextPart("or not"))], { options })), "or not");
  const changed = new EventTarget();
  provider.onDidChangeLanguageModelChatInformation!(() => changed.dispatchEvent(new Event("change")));
  const heard = once(changed, "change");
  editor.changeSettings({ affectsConfiguration: () => true });
  await heard;

  await ask(provider, [message(1, new TextPart("again"))], { options });
  const pids = [...editor.lines.join("\n").matchAll(/loading in process (\d+)/g)].map((match) => Number(match[1]));
  assert.equal(pids.length, 3);
  await extension.deactivate();
  assert.deepEqual(pids.map(isAlive), [false, false, false]);
});
