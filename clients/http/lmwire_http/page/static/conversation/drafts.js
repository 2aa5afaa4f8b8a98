// The message that is being written, and the files that go with it.
import { Observable } from "../observable.js";
import { readAttachment } from "./attachments.js";

export class Drafts extends Observable {
  attachments = [];
  #notices;
  #reading = 0;
  #isRead = Promise.resolve();
  #failed = 0;

  constructor(notices) {
    super();
    this.#notices = notices;
  }

  /** Whether files are still being read. */
  get isReading() {
    return this.#reading > 0;
  }

  /** Add files, after those that came before. */
  attach(files, model) {
    this.#reading += 1;
    this.changed();
    this.#isRead = this.#isRead.then(() => this.#read(files, model));
  }

  /** Wait until all files are read. Returns whether none failed meanwhile. */
  async whenRead() {
    const failed = this.#failed;
    while (this.isReading) await this.#isRead;
    return failed === this.#failed;
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

  async #read(files, model) {
    for (const file of files) {
      try {
        const attachment = await readAttachment(file, model); // others may go meanwhile
        this.attachments = [...this.attachments, attachment];
      } catch (error) {
        this.#failed += 1;
        this.#notices.show(error.message);
      }
      this.changed();
    }
    this.#reading -= 1;
    this.changed();
  }
}
