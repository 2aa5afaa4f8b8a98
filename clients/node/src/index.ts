/**
 * Run an MLX language model as a child process, and stream its answers.
 *
 * @packageDocumentation
 */

export {
  type Answer,
  type AnswerEvent,
  AnswerStream,
  type Choice,
  type ToolCall,
} from "./answers.js";
export { CircuitBreaker, type CircuitBreakerOptions } from "./circuit-breaker.js";
export type { ShutdownTimeouts } from "./connection.js";
export {
  InvalidCommand,
  LmwireError,
  RequestFailed,
  RequestTimeout,
  StartFailed,
  UnsupportedByWorker,
  WorkerLost,
  WorkerUnavailable,
} from "./errors.js";
export { type FoundWorker, findWorker, type SearchOptions } from "./find-worker.js";
export type { FinishReason } from "./finish-reason.js";
export type * from "./generated/types.js";
export { type RequestOptions, RequestStream } from "./request-stream.js";
export {
  type Embeddings,
  type Speech,
  SpeechStream,
  type Tokens,
  type Transcript,
  TranscriptStream,
} from "./results.js";
export { Supervisor, type SupervisorOptions } from "./supervisor.js";
export { VERSION } from "./version.js";
export {
  type ChatFields,
  type EmbedFields,
  type GenerateFields,
  type LoadFields,
  type LoadOptions,
  type SpeakFields,
  type StartOptions,
  type TokenizeFields,
  type TranscribeFields,
  Worker,
} from "./worker.js";
