// The figures below an answer: speed, waiting time and tokens.

/** Return the figures of an answer as [label, value, explanation]. */
export function figuresOf({ timing, usage }, contextLength) {
  const figures = [];
  const tokens = usage?.completion_tokens ?? 0;
  if (tokens > 1 && timing?.stream > 0) {
    figures.push(["Speed", `${round((tokens - 1) / (timing.stream / 1000))} tokens/s`, "after the first token"]);
  }
  if (timing) figures.push(["First token", `first token after ${seconds(timing.first)}`, "time to first token"]);
  if (usage) {
    figures.push(["Answer", plural(tokens, "token"), "tokens of the answer"]);
    const { cached_tokens: cached } = usage.prompt_tokens_details ?? {};
    figures.push(["Cached", `${cached ?? 0} of ${usage.prompt_tokens} cached`, "cached tokens of the prompt"]);
    if (contextLength) figures.push(["Context", percent(usage.total_tokens / contextLength), "part of the context in use"]);
  }
  return figures;
}

/** Return the part of the context that the last answer uses, from 0 to 1; null if unknown. */
export function contextUse(path, contextLength) {
  const used = path.findLast(({ usage }) => usage)?.usage.total_tokens;
  return used && contextLength ? Math.min(1, used / contextLength) : null;
}

function percent(part) {
  return `${part < 0.01 ? "<1" : Math.round(part * 100)} % of context`;
}

function plural(count, noun) {
  return `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;
}

function seconds(ms) {
  return ms < 1000 ? `${Math.round(ms)} ms` : `${round(ms / 1000)} s`;
}

function round(value) {
  return value >= 100 ? Math.round(value).toLocaleString("en") : value.toFixed(1);
}
