// Preact with htm's templates, which need no compiler.
import htm from "../vendor/htm.js";
import { useEffect, useState } from "../vendor/hooks.js";
import { h, render } from "../vendor/preact.js";

export { render };
export * from "../vendor/hooks.js";
export const html = htm.bind(h);

/** Render the component again at each change of these observables. */
export function useChanges(...observables) {
  const [, setCount] = useState(0);
  useEffect(() => {
    const update = () => setCount((count) => count + 1);
    const ends = observables.map((each) => each.subscribe(update));
    update(); // for what has changed before this effect ran
    return () => ends.forEach((end) => end());
  }, observables);
}
