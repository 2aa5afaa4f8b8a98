import { execFile } from "node:child_process";
import { promisify } from "node:util";
import type * as vscode from "vscode";

/** Largest list of models that is read, in bytes. */
const LIST_BYTES = 16 * 1024 * 1024;
/** The share of the context that is left for the answer, and the most tokens that are left. */
const ANSWER_SHARE = 4;
const MAX_ANSWER_TOKENS = 8192;
/** Kinds of models that chat. */
const CHAT_KINDS = new Set(["text", "vision"]);

/** A model of the settings. */
export interface ConfiguredModel {
  name: string;
  /** Tokens of prompt and answer together. */
  contextLength: number;
  imageInput?: boolean;
}

/** A model as `lmwire models --json` lists it. */
interface ListedModel {
  id: string;
  model_type: string;
  bits: number | null;
  context_len: number | null;
  size_bytes: number;
  problem: string | null;
  kind: string;
}

/**
 * Return the models on the worker's machine that can chat.
 *
 * @param workerCommand - The command that starts a worker. The list comes from the same program.
 * @throws Error if the program fails, or its output is not a list.
 */
export async function listModels(workerCommand: readonly string[]): Promise<vscode.LanguageModelChatInformation[]> {
  const place = workerCommand.lastIndexOf("worker");
  if (place < 1) return []; // another kind of command: only the settings know its models
  const [program, ...args] = [...workerCommand.slice(0, place), "models", "--json"];
  const { stdout } = await promisify(execFile)(program!, args, { maxBuffer: LIST_BYTES });
  const listed = JSON.parse(stdout) as ListedModel[];
  return listed.filter((model) => !model.problem && CHAT_KINDS.has(model.kind)).map(fromListed);
}

/** Return a model of the settings as the editor describes models. */
export function fromConfigured({ name, contextLength, imageInput = false }: ConfiguredModel) {
  return describe(name, name, "set in lmwire.models", contextLength, imageInput);
}

function fromListed(model: ListedModel): vscode.LanguageModelChatInformation {
  const bits = model.bits === null ? "" : `${model.bits} bits, `;
  const detail = `${bits}${Math.round(model.size_bytes / 1e6)} MB`;
  return describe(model.id, model.model_type, detail, model.context_len ?? 4096, model.kind === "vision");
}

function describe(id: string, family: string, detail: string, contextLength: number, imageInput: boolean) {
  const maxOutputTokens = Math.min(Math.ceil(contextLength / ANSWER_SHARE), MAX_ANSWER_TOKENS);
  const name = id.slice(id.lastIndexOf("/") + 1);
  const maxInputTokens = contextLength - maxOutputTokens;
  // A model that cannot call tools refuses them with a sentence, which the chat shows.
  const capabilities = { imageInput, toolCalling: true };
  return { id, name, family, detail, tooltip: id, version: "1", maxInputTokens, maxOutputTokens, capabilities };
}
