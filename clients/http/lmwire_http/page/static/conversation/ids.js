// Identifiers that two tabs do not both choose. crypto.randomUUID exists only on https and on this machine.
export function newId() {
  return Array.from(crypto.getRandomValues(new Uint8Array(12)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
