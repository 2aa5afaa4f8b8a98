// Short notes to the user, such as a file that cannot be read. A new one takes the place of the last.
import { Observable } from "./observable.js";

export const EVERYWHERE = "everywhere";
export const NEW_CHAT = "";

export class Notices extends Observable {
  #text = "";
  #place = EVERYWHERE;

  /**
   * Show a note.
   * @param place Id of the conversation that it belongs to, and where alone it is shown; NEW_CHAT, or EVERYWHERE.
   */
  show(text, place = EVERYWHERE) {
    this.#text = text;
    this.#place = place;
    this.changed();
  }

  /** Return the note for a conversation; empty if there is none. */
  textFor(conversation) {
    return [EVERYWHERE, conversation].includes(this.#place) ? this.#text : "";
  }

  /** Dismiss the note of a place, or any note. */
  dismiss(place = this.#place) {
    if (place === this.#place) this.show("");
  }
}
