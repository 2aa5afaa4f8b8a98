// Which tabs of this page are open. Each holds a lock, which the browser releases when the tab ends, even by a crash.
// Browsers have locks on https and on this machine alone. Elsewhere a tab knows only what the others report.
import { newId } from "./ids.js";

export const THIS_TAB = newId();

/** Hold the lock of this tab. Until then other tabs must not learn of it. */
export function holdTab() {
  return new Promise((resolve) => {
    const hold = () => (resolve(), new Promise(() => {}));
    request(THIS_TAB, {}, hold).catch(resolve);
  });
}

/** Return whether another tab is open, as far as locks show it. */
export function isOpen(tab) {
  return request(tab, { mode: "shared", ifAvailable: true }, (lock) => !lock).catch(() => false);
}

/** Wait until another tab has ended. */
export function whenEnded(tab) {
  return request(tab, { mode: "shared" }, () => {}).catch(() => new Promise(() => {}));
}

async function request(tab, options, action) {
  return navigator.locks.request(`lmwire.${tab}`, options, action);
}
