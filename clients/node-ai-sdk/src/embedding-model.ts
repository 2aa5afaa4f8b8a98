import type { EmbeddingModelV3, EmbeddingModelV3CallOptions, EmbeddingModelV3Result } from "@ai-sdk/provider";
import { toCallError } from "./call-error.js";
import type { WorkerOf } from "./provider.js";

/** A model that turns texts into vectors. */
export class LmwireEmbeddingModel implements EmbeddingModelV3 {
  readonly specificationVersion = "v3";
  readonly provider = "lmwire";
  /** The protocol's limit of one `embed`. */
  readonly maxEmbeddingsPerCall = 2048;
  readonly supportsParallelCalls = true;
  readonly modelId: string;
  readonly #worker: WorkerOf;

  constructor(modelId: string, worker: WorkerOf) {
    this.modelId = modelId;
    this.#worker = worker;
  }

  async doEmbed({
    values,
    abortSignal,
    providerOptions,
  }: EmbeddingModelV3CallOptions): Promise<EmbeddingModelV3Result> {
    try {
      const worker = await this.#worker();
      const options = abortSignal ? { signal: abortSignal } : {};
      const { vectors, usage } = await worker.embed(values, providerOptions?.lmwire ?? {}, options);
      const embeddings = vectors.map((vector) => Array.from(vector));
      return { embeddings, usage: { tokens: usage.prompt_tokens }, warnings: [] };
    } catch (error) {
      throw toCallError(error);
    }
  }
}
