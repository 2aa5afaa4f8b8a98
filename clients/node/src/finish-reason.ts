import type { ResultDone } from "./generated/types.js";

/** Why an answer ended. `other` stands for reasons that are newer than this package. */
export type FinishReason = ResultDone["finish_reason"] | "other";

const FINISH_REASONS: ReadonlySet<string> = new Set<ResultDone["finish_reason"]>([
  "stop",
  "length",
  "tool_calls",
  "cancelled",
  "timeout",
  "capacity",
]);

/** Return a reason as it is, or `other` if this version does not know it. */
export function knownFinishReason(reason: string): FinishReason {
  return FINISH_REASONS.has(reason) ? (reason as FinishReason) : "other";
}
