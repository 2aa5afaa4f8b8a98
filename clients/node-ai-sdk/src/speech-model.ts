import type { SpeechModelV4, SpeechModelV4CallOptions, SpeechModelV4Result } from "@ai-sdk/provider";
import type { Speech } from "lmwire";
import type { Ask } from "./provider.js";
import { headerWarnings, unsupported } from "./warnings.js";

const WAV_HEADER_BYTES = 44;

/** A model that speaks texts. */
export class LmwireSpeechModel implements SpeechModelV4 {
  readonly specificationVersion = "v4";
  readonly provider = "lmwire";
  readonly modelId: string;
  readonly #ask: Ask;

  constructor(modelId: string, ask: Ask) {
    this.modelId = modelId;
    this.#ask = ask;
  }

  async doGenerate(options: SpeechModelV4CallOptions): Promise<SpeechModelV4Result> {
    const timestamp = new Date();
    const { text, voice, language, instructions, speed, outputFormat = "wav", providerOptions } = options;
    const fields = {
      ...(voice && { voice }),
      ...(language && language !== "auto" && { language }),
      ...(instructions && { instructions }),
      ...(speed !== undefined && { speed }),
      ...providerOptions?.lmwire,
    };
    const speech = await this.#ask(options, (worker, limits) => worker.speak(text, fields, limits).result());
    const { seed, duration_s, finish_reason } = speech;
    const warnings = headerWarnings(options.headers);
    if (outputFormat !== "wav") warnings.push(unsupported("outputFormat", "the speech is WAV; convert it"));
    if (finish_reason !== "stop") {
      warnings.push({ type: "other", message: `the speech is incomplete, because of ${finish_reason}` });
    }
    return {
      audio: toWav(speech),
      warnings,
      response: { timestamp, modelId: this.modelId },
      providerMetadata: { lmwire: { seed, duration_s } },
    };
  }
}

/** Return a speech as a WAV file; nothing for no samples. */
function toWav({ samples, sample_rate }: Speech): Uint8Array {
  if (!sample_rate) return new Uint8Array();
  const wav = Buffer.alloc(WAV_HEADER_BYTES + samples.byteLength);
  wav.write("RIFF", 0);
  wav.writeUInt32LE(wav.length - 8, 4);
  wav.write("WAVEfmt ", 8);
  wav.writeUInt32LE(16, 16); // the length of what follows, up to `data`
  wav.writeUInt16LE(1, 20); // PCM
  wav.writeUInt16LE(1, 22); // channels
  wav.writeUInt32LE(sample_rate, 24);
  wav.writeUInt32LE(sample_rate * samples.BYTES_PER_ELEMENT, 28); // bytes per second
  wav.writeUInt16LE(samples.BYTES_PER_ELEMENT, 32);
  wav.writeUInt16LE(8 * samples.BYTES_PER_ELEMENT, 34);
  wav.write("data", 36);
  wav.writeUInt32LE(samples.byteLength, 40);
  samples.forEach((sample, index) => {
    wav.writeInt16LE(sample, WAV_HEADER_BYTES + index * samples.BYTES_PER_ELEMENT);
  });
  return wav;
}
