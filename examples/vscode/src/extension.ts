import * as vscode from "vscode";
import type { ConfiguredModel } from "./models.js";
import { Provider, type Settings } from "./provider.js";
import { Workers } from "./workers.js";

let workers: Workers | undefined;

/** Called by the editor when the extension is used first. */
export function activate(context: vscode.ExtensionContext): void {
  const log = vscode.window.createOutputChannel("lmwire");
  const write = (line: string) => log.appendLine(line);
  const started = new Workers(() => startOptions(), write);
  workers = started;
  const provider = new Provider(vscode, started, settings, write);
  const changed = new vscode.EventEmitter<void>();
  const offered = Object.assign(provider, { onDidChangeLanguageModelChatInformation: changed.event });
  context.subscriptions.push(
    log,
    changed,
    vscode.lm.registerLanguageModelChatProvider("lmwire", offered),
    vscode.workspace.onDidChangeConfiguration(async (event) => {
      if (!event.affectsConfiguration("lmwire")) return;
      await started.close();
      changed.fire();
    }),
    vscode.commands.registerCommand("lmwire.stopWorker", () => started.close()),
    vscode.commands.registerCommand("lmwire.showLog", () => log.show()),
    vscode.commands.registerCommand("lmwire.pickModel", () => pickModel(provider, started)),
  );
}

/** Called by the editor when it ends. It waits until the workers are gone. */
export async function deactivate(): Promise<void> {
  await workers?.close();
}

function settings(): Settings {
  const configuration = vscode.workspace.getConfiguration("lmwire");
  return {
    command: configuration.get<string[]>("command", []),
    uvx: configuration.get<boolean>("uvx", false),
    models: configuration.get<ConfiguredModel[]>("models", []),
  };
}

function startOptions() {
  const { command, uvx } = settings();
  return command.length ? { command } : { uvx };
}

/** Let the user choose a model, and load it, so that its first answer comes sooner. */
async function pickModel(provider: Provider, started: Workers): Promise<void> {
  const models = await provider.provideLanguageModelChatInformation({ silent: false });
  const items = models.map(({ id, name, detail }) => ({ label: name, ...(detail && { description: detail }), id }));
  const picked = await vscode.window.showQuickPick(items, { placeHolder: "The model to load" });
  if (!picked) return;
  const location = vscode.ProgressLocation.Notification;
  await vscode.window.withProgress({ location, title: `lmwire loads ${picked.label}` }, () => started.get(picked.id));
}
