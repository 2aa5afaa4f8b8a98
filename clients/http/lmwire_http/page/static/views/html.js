// Preact with htm's templates, which need no compiler. Effects run together with the render (useLayoutEffect): one that
// came later would take the focus from what the user has turned to meanwhile, or miss an event.
import htm from "../vendor/htm.js";
import { useLayoutEffect, useState } from "../vendor/hooks.js";
import { h, render } from "../vendor/preact.js";

export { render };
export * from "../vendor/hooks.js";
export const html = htm.bind(h);

/** Render the component again at each change of these observables. */
export function useChanges(...observables) {
  const [, setCount] = useState(0);
  useLayoutEffect(() => {
    const update = () => setCount((count) => count + 1);
    const ends = observables.map((each) => each.subscribe(update));
    return () => ends.forEach((end) => end());
  }, observables);
}
