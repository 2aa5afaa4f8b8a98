// Something whose changes others want to know.
export class Observable {
  #listeners = new Set();

  /** Call the listener at each change. Returns a function that ends this. */
  subscribe(listener) {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  changed() {
    for (const listener of [...this.#listeners]) listener();
  }
}
