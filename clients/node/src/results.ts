import type { RawEvent } from "./event-check.js";
import { type FinishReason, knownFinishReason } from "./finish-reason.js";
import type {
  AudioEvent,
  EmbedDone,
  EmbeddingEvent,
  ProgressEvent,
  SegmentEvent,
  SpeakDone,
  TokenEvent,
  TokenizeDone,
  TranscribeDone,
  Usage,
} from "./generated/types.js";
import { RequestStream } from "./request-stream.js";

const FLOAT_BYTES = 4;

/** A request without text: its events are progress, and its result is the `done`. */
export class DoneStream<TDone> extends RequestStream<ProgressEvent, TDone> {
  protected override accept(event: RawEvent): ProgressEvent | undefined {
    return event.event === "progress" ? (event as unknown as ProgressEvent) : undefined;
  }

  protected override finish(done: RawEvent): TDone {
    return done as unknown as TDone;
  }
}

/** A prompt as the model receives it. */
export interface Tokens {
  text: string;
  token_ids: number[];
  count: number;
}

export class TokenizeStream extends RequestStream<TokenEvent, Tokens> {
  #text = "";
  readonly #ids: number[] = [];

  protected override accept(raw: RawEvent): TokenEvent | undefined {
    if (raw.event !== "token") return undefined;
    const event = raw as unknown as TokenEvent;
    this.#text += event.token;
    for (const id of event.token_ids) this.#ids.push(id);
    return event;
  }

  protected override finish(done: RawEvent): Tokens {
    return { text: this.#text, token_ids: this.#ids, count: (done as unknown as TokenizeDone).count };
  }
}

/** The vectors of `embed`, in the order of the inputs. */
export interface Embeddings {
  vectors: Float32Array[];
  dimensions: number;
  usage: Usage;
}

export class EmbedStream extends RequestStream<never, Embeddings> {
  readonly #vectors: Float32Array[] = [];

  protected override accept(raw: RawEvent): undefined {
    if (raw.event !== "embedding") return;
    const { index, dims, offset = 0, embedding } = raw as unknown as EmbeddingEvent;
    this.#vectors[index] ??= new Float32Array(dims);
    this.#vectors[index].set(typeof embedding === "string" ? decodeFloats(embedding) : embedding, offset);
  }

  protected override finish(raw: RawEvent): Embeddings {
    const { dimensions, usage } = raw as unknown as EmbedDone;
    return { vectors: this.#vectors, dimensions, usage };
  }
}

/** Return the numbers of little-endian float32 in base64. */
function decodeFloats(base64: string): Float32Array {
  const bytes = Buffer.from(base64, "base64");
  const numbers = new Float32Array(Math.floor(bytes.length / FLOAT_BYTES));
  for (let index = 0; index < numbers.length; index++) numbers[index] = bytes.readFloatLE(index * FLOAT_BYTES);
  return numbers;
}

/** A transcript, whole or as far as it came. */
export interface Transcript {
  text: string;
  segments: SegmentEvent[];
  /** The spoken language, if the model reports it. */
  language: string | undefined;
  /** Length of the recording, in seconds. */
  duration_s: number;
  finish_reason: FinishReason;
}

/** A transcript as it is made. */
export class TranscriptStream extends RequestStream<SegmentEvent | ProgressEvent, Transcript> {
  readonly #segments: SegmentEvent[] = [];

  protected override accept(raw: RawEvent): SegmentEvent | ProgressEvent | undefined {
    const event = raw as unknown as SegmentEvent | ProgressEvent;
    if (event.event === "segment") this.#segments.push(event);
    return event.event === "segment" || event.event === "progress" ? event : undefined;
  }

  protected override finish(raw: RawEvent): Transcript {
    const { language, duration_s, finish_reason } = raw as unknown as TranscribeDone;
    const text = this.#segments.map((segment) => segment.text).join("");
    return { text, segments: this.#segments, language, duration_s, finish_reason: knownFinishReason(finish_reason) };
  }
}

/** A speech, whole or as far as it came. */
export interface Speech {
  /** The samples of one channel. */
  samples: Int16Array;
  /** Samples per second; undefined if there are none. */
  sample_rate: number | undefined;
  duration_s: number;
  finish_reason: FinishReason;
  seed: number;
}

const SAMPLE_BYTES = 2;

/** A speech as it is made. */
export class SpeechStream extends RequestStream<AudioEvent | ProgressEvent, Speech> {
  readonly #parts: Buffer[] = [];
  #sampleRate: number | undefined;

  protected override accept(raw: RawEvent): AudioEvent | ProgressEvent | undefined {
    const event = raw as unknown as AudioEvent | ProgressEvent;
    if (event.event === "audio") {
      this.#parts.push(Buffer.from(event.audio, "base64"));
      this.#sampleRate = event.sample_rate;
    }
    return event.event === "audio" || event.event === "progress" ? event : undefined;
  }

  protected override finish(raw: RawEvent): Speech {
    const bytes = Buffer.concat(this.#parts);
    const samples = new Int16Array(Math.floor(bytes.length / SAMPLE_BYTES));
    for (let index = 0; index < samples.length; index++) samples[index] = bytes.readInt16LE(index * SAMPLE_BYTES);
    const { duration_s, finish_reason, seed } = raw as unknown as SpeakDone;
    return {
      samples,
      sample_rate: this.#sampleRate,
      duration_s,
      finish_reason: knownFinishReason(finish_reason),
      seed,
    };
  }
}
