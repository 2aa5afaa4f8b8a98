import { findWorker } from "lmwire";
import type * as vscode from "vscode";
import { toFields, toMessages, toText } from "./messages.js";
import { type ConfiguredModel, fromConfigured, listModels } from "./models.js";
import type { Workers } from "./workers.js";

/** The editor's classes that the provider makes objects of. */
export type EditorClasses = Pick<
  typeof vscode,
  "CancellationError" | "LanguageModelTextPart" | "LanguageModelToolCallPart"
>;

/** The settings, as the user has them now. */
export interface Settings {
  /** The worker's command; empty to look for one. */
  command: readonly string[];
  /** Whether uvx may download a worker if none is found. */
  uvx: boolean;
  models: readonly ConfiguredModel[];
}

/** Offers the models of this machine to the editor's chat. */
export class Provider implements vscode.LanguageModelChatProvider {
  readonly #classes: EditorClasses;
  readonly #workers: Workers;
  readonly #settings: () => Settings;
  readonly #log: (line: string) => void;

  constructor(classes: EditorClasses, workers: Workers, settings: () => Settings, log: (line: string) => void) {
    this.#classes = classes;
    this.#workers = workers;
    this.#settings = settings;
    this.#log = log;
  }

  /** Return the models of the worker's machine and those of the settings, which win. */
  async provideLanguageModelChatInformation(
    options: vscode.PrepareLanguageModelChatModelOptions,
  ): Promise<vscode.LanguageModelChatInformation[]> {
    const { command, uvx, models } = this.#settings();
    const configured = models.map(fromConfigured);
    const names = new Set(configured.map(({ id }) => id));
    try {
      const listed = await listModels(command.length ? command : findWorker(process.env, { uvx }).command);
      return [...configured, ...listed.filter(({ id }) => !names.has(id))];
    } catch (error) {
      this.#log(`the models cannot be listed: ${error}`);
      if (!options.silent && !configured.length) throw error;
      return configured;
    }
  }

  async provideLanguageModelChatResponse(
    model: vscode.LanguageModelChatInformation,
    messages: readonly vscode.LanguageModelChatRequestMessage[],
    options: vscode.ProvideLanguageModelChatResponseOptions,
    progress: vscode.Progress<vscode.LanguageModelResponsePart>,
    token: vscode.CancellationToken,
  ): Promise<void> {
    const { CancellationError, LanguageModelTextPart, LanguageModelToolCallPart } = this.#classes;
    const abort = new AbortController();
    const listener = token.onCancellationRequested(() => abort.abort(new CancellationError()));
    try {
      const worker = await this.#workers.get(model.id);
      const stream = worker.chat(toMessages(messages), toFields(options), { signal: abort.signal });
      for await (const text of stream.text()) progress.report(new LanguageModelTextPart(text));
      for (const call of (await stream.result()).tool_calls) {
        const input = call.arguments ? JSON.parse(call.arguments) : {};
        progress.report(new LanguageModelToolCallPart(call.id, call.name, input));
      }
    } catch (error) {
      if (!(error instanceof CancellationError)) this.#log(`${model.id}: ${error}`);
      throw error;
    } finally {
      listener.dispose();
    }
  }

  /** Count the tokens of a text with the model's own tokenizer. */
  async provideTokenCount(
    model: vscode.LanguageModelChatInformation,
    content: string | vscode.LanguageModelChatRequestMessage,
  ): Promise<number> {
    const text = typeof content === "string" ? content : toText(content);
    if (!text) return 0;
    const worker = await this.#workers.get(model.id);
    return (await worker.tokenize(text, { count_only: true })).count;
  }
}
