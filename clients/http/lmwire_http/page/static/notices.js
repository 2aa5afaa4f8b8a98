// Short notes to the user, such as a full storage. A new one takes the place of the last.
import { Observable } from "./observable.js";

export class Notices extends Observable {
  text = "";

  show(text) {
    this.text = text;
    this.changed();
  }

  dismiss() {
    this.show("");
  }
}
