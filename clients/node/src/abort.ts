/** The callbacks of each signal. One listener serves them all: Node warns of a leak at more than ten. */
const callbacks = new WeakMap<AbortSignal, Set<() => void>>();

/**
 * Call a function when a signal is aborted.
 *
 * @returns a function that forgets the callback.
 */
export function onAbort(signal: AbortSignal, callback: () => void): () => void {
  let all = callbacks.get(signal);
  if (!all) {
    const added = new Set<() => void>();
    signal.addEventListener("abort", () => callAll(signal, added), { once: true });
    callbacks.set(signal, added);
    all = added;
  }
  all.add(callback);
  return () => all.delete(callback);
}

function callAll(signal: AbortSignal, all: ReadonlySet<() => void>): void {
  callbacks.delete(signal);
  for (const callback of [...all]) callback();
}
