import { type EmbeddingModelV3, type LanguageModelV3, NoSuchModelError, type ProviderV3 } from "@ai-sdk/provider";
import { type LoadFields, type StartOptions, Supervisor, type Worker } from "lmwire";
import { LmwireEmbeddingModel } from "./embedding-model.js";
import { LmwireLanguageModel } from "./language-model.js";

/** Settings of a provider. */
export interface LmwireSettings {
  /** How workers are started. By default they are looked for; see lmwire's `findWorker`. */
  start?: StartOptions;
  /** Fields of each load, such as `{ context_len: 8192 }`. */
  load?: LoadFields;
}

/** Returns models by name: a folder, a hub id (`owner/name`) or an alias. Close it at the end of the program. */
export interface LmwireProvider extends ProviderV3 {
  (modelId: string): LanguageModelV3;
  /** End all workers. */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** Returns the worker that has a model loaded. */
export type WorkerOf = () => Promise<Worker>;

/**
 * Return a provider. Each model has a worker of its own, which starts at the model's first request.
 *
 * @example
 * await using lmwire = createLmwire();
 * const { text } = await generateText({ model: lmwire("mlx-community/Qwen3-0.6B-4bit"), prompt: "Hello" });
 */
export function createLmwire(settings: LmwireSettings = {}): LmwireProvider {
  const supervisors = new Map<string, Supervisor>();
  const workerOf =
    (modelId: string): WorkerOf =>
    () => {
      let supervisor = supervisors.get(modelId);
      if (!supervisor) {
        const setUp = (worker: Worker) => worker.load(modelId, settings.load);
        supervisor = new Supervisor({ setUp, ...(settings.start && { start: settings.start }) });
        supervisors.set(modelId, supervisor);
      }
      return supervisor.worker();
    };
  const close = async () => {
    const ending = [...supervisors.values()];
    supervisors.clear();
    await Promise.all(ending.map((supervisor) => supervisor.close()));
  };
  const languageModel = (modelId: string): LanguageModelV3 => new LmwireLanguageModel(modelId, workerOf(modelId));
  const embeddingModel = (modelId: string): EmbeddingModelV3 => new LmwireEmbeddingModel(modelId, workerOf(modelId));
  return Object.assign((modelId: string) => languageModel(modelId), {
    specificationVersion: "v3" as const,
    languageModel,
    embeddingModel,
    textEmbeddingModel: embeddingModel,
    imageModel: (modelId: string): never => {
      throw new NoSuchModelError({ modelId, modelType: "imageModel" });
    },
    close,
    [Symbol.asyncDispose]: close,
  });
}
