import type {
  TranscriptionModelV4,
  TranscriptionModelV4CallOptions,
  TranscriptionModelV4Result,
} from "@ai-sdk/provider";
import type { Ask } from "./provider.js";
import { headerWarnings } from "./warnings.js";

/** A model that turns recordings into text. */
export class LmwireTranscriptionModel implements TranscriptionModelV4 {
  readonly specificationVersion = "v4";
  readonly provider = "lmwire";
  readonly modelId: string;
  readonly #ask: Ask;

  constructor(modelId: string, ask: Ask) {
    this.modelId = modelId;
    this.#ask = ask;
  }

  async doGenerate(options: TranscriptionModelV4CallOptions): Promise<TranscriptionModelV4Result> {
    const timestamp = new Date();
    const { audio, timestampGranularities, providerOptions } = options;
    const data = typeof audio === "string" ? audio : Buffer.from(audio).toString("base64");
    const fields = { words: timestampGranularities?.includes("word") ?? false, ...providerOptions?.lmwire };
    const { text, segments, language, duration_s, finish_reason } = await this.#ask(options, (worker, limits) =>
      worker.transcribe({ data }, fields, limits).result(),
    );
    const warnings = headerWarnings(options.headers);
    if (finish_reason !== "stop") {
      warnings.push({ type: "other", message: `the transcript is incomplete, because of ${finish_reason}` });
    }
    return {
      text,
      segments: segments.map(toTimed),
      ...(fields.words && { words: segments.flatMap((segment) => (segment.words ?? []).map(toTimed)) }),
      language,
      durationInSeconds: duration_s,
      warnings,
      response: { timestamp, modelId: this.modelId },
    };
  }
}

function toTimed({ text, start_s, end_s }: { text: string; start_s: number; end_s: number }) {
  return { text, startSecond: start_s, endSecond: end_s };
}
