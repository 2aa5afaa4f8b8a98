import type { SharedV4Headers, SharedV4Warning } from "@ai-sdk/provider";

/**
 * Return the warning that a setting has no effect.
 *
 * @param details - What happens instead, and what to do about it.
 */
export function unsupported(feature: string, details: string): SharedV4Warning {
  return { type: "unsupported", feature, details };
}

/** Return a warning for a caller's HTTP headers. The AI SDK itself adds a user agent to each call. */
export function headerWarnings(headers: Partial<SharedV4Headers> = {}): SharedV4Warning[] {
  const names = Object.keys(headers).filter((name) => name.toLowerCase() !== "user-agent");
  return names.length ? [unsupported("headers", `a worker gets no HTTP headers; leave out ${names.join(", ")}`)] : [];
}
