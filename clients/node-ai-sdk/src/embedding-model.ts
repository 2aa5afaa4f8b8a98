import type { EmbeddingModelV4, EmbeddingModelV4CallOptions, EmbeddingModelV4Result } from "@ai-sdk/provider";
import type { Ask } from "./provider.js";
import { headerWarnings } from "./warnings.js";

/** A model that turns texts into vectors. */
export class LmwireEmbeddingModel implements EmbeddingModelV4 {
  readonly specificationVersion = "v4";
  readonly provider = "lmwire";
  /** The protocol's limit of one `embed`. */
  readonly maxEmbeddingsPerCall = 2048;
  readonly supportsParallelCalls = true;
  readonly modelId: string;
  readonly #ask: Ask;

  constructor(modelId: string, ask: Ask) {
    this.modelId = modelId;
    this.#ask = ask;
  }

  async doEmbed(options: EmbeddingModelV4CallOptions): Promise<EmbeddingModelV4Result> {
    const { values, dimensions, providerOptions } = options;
    const fields = { ...(dimensions !== undefined && { dimensions }), ...providerOptions?.lmwire };
    const { vectors, usage } = await this.#ask(options, (worker, limits) => worker.embed(values, fields, limits));
    const embeddings = vectors.map((vector) => Array.from(vector));
    return { embeddings, usage: { tokens: usage.prompt_tokens }, warnings: headerWarnings(options.headers) };
  }
}
