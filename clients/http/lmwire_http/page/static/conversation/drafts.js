// The message that is being written, and the files that go with it.
import { Observable } from "../observable.js";
import { readAttachment } from "./attachments.js";

export class Drafts extends Observable {
  attachments = [];
  #notices;

  constructor(notices) {
    super();
    this.#notices = notices;
  }

  async attach(files, model) {
    for (const file of files) {
      try {
        const attachment = await readAttachment(file, model); // others may come or go meanwhile
        this.attachments = [...this.attachments, attachment];
      } catch (error) {
        this.#notices.show(error.message);
      }
    }
    this.changed();
  }

  remove(attachment) {
    this.attachments = this.attachments.filter((each) => each !== attachment);
    this.changed();
  }

  /** Return the attachments and forget them. */
  take() {
    const taken = this.attachments;
    this.attachments = [];
    this.changed();
    return taken;
  }
}
