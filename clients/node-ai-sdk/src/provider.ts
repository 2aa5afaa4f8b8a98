import {
  type EmbeddingModelV4,
  type LanguageModelV4,
  NoSuchModelError,
  type ProviderV4,
  type SpeechModelV4,
  type TranscriptionModelV4,
} from "@ai-sdk/provider";
import { type LoadFields, type RequestOptions, type StartOptions, Supervisor, type Worker } from "lmwire";
import { toCallError } from "./call-error.js";
import { LmwireEmbeddingModel } from "./embedding-model.js";
import { LmwireLanguageModel } from "./language-model.js";
import { LmwireSpeechModel } from "./speech-model.js";
import { LmwireTranscriptionModel } from "./transcription-model.js";

/** Settings of a provider. */
export interface LmwireSettings {
  /** How workers are started. By default they are looked for; see lmwire's `findWorker`. */
  start?: StartOptions;
  /** Fields of each load, such as `{ context_len: 8192 }`. */
  load?: LoadFields;
}

/** Returns models by name: a folder, a hub id (`owner/name`) or an alias. Close it at the end of the program. */
export interface LmwireProvider extends ProviderV4 {
  (modelId: string): LanguageModelV4;
  transcriptionModel(modelId: string): TranscriptionModelV4;
  speechModel(modelId: string): SpeechModelV4;
  /** End all workers. */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** Makes a request to the worker that has a model loaded. An abort ends the wait for the model, too. */
export type Ask = <T>(
  call: { abortSignal?: AbortSignal },
  request: (worker: Worker, options: RequestOptions) => T | Promise<T>,
) => Promise<T>;

/**
 * Return a provider. Each model has a worker of its own, which starts at the model's first request.
 *
 * @example
 * await using lmwire = createLmwire();
 * const { text } = await generateText({ model: lmwire("mlx-community/Qwen3-0.6B-4bit"), prompt: "Hello" });
 */
export function createLmwire(settings: LmwireSettings = {}): LmwireProvider {
  const supervisors = new Map<string, Supervisor>();
  const supervisorOf = (modelId: string): Supervisor => {
    let supervisor = supervisors.get(modelId);
    if (!supervisor) {
      const setUp = (worker: Worker) => worker.load(modelId, settings.load);
      supervisor = new Supervisor({ setUp, ...(settings.start && { start: settings.start }) });
      supervisors.set(modelId, supervisor);
    }
    return supervisor;
  };
  const asker =
    (modelId: string): Ask =>
    async ({ abortSignal: signal }, request) => {
      try {
        signal?.throwIfAborted();
        const worker = await orAbort(supervisorOf(modelId).worker(), signal);
        return await request(worker, signal ? { signal } : {});
      } catch (error) {
        throw toCallError(error);
      }
    };
  const close = async () => {
    const ending = [...supervisors.values()];
    supervisors.clear();
    await Promise.all(ending.map((supervisor) => supervisor.close()));
  };
  const languageModel = (modelId: string): LanguageModelV4 => new LmwireLanguageModel(modelId, asker(modelId));
  return Object.assign((modelId: string) => languageModel(modelId), {
    specificationVersion: "v4" as const,
    languageModel,
    embeddingModel: (modelId: string): EmbeddingModelV4 => new LmwireEmbeddingModel(modelId, asker(modelId)),
    transcriptionModel: (modelId: string): TranscriptionModelV4 =>
      new LmwireTranscriptionModel(modelId, asker(modelId)),
    speechModel: (modelId: string): SpeechModelV4 => new LmwireSpeechModel(modelId, asker(modelId)),
    imageModel: (modelId: string): never => {
      const message = `lmwire makes no images; take another provider for the image model ${modelId}`;
      throw new NoSuchModelError({ modelId, modelType: "imageModel", message });
    },
    close,
    [Symbol.asyncDispose]: close,
  });
}

/** Return what a promise resolves to, or throw the signal's reason if that comes first: the load goes on by itself. */
async function orAbort<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (!signal) return promise;
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  const abort = () => reject(signal.reason);
  signal.addEventListener("abort", abort);
  try {
    return await Promise.race([promise, aborted]);
  } finally {
    signal.removeEventListener("abort", abort);
  }
}
