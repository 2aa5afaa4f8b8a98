// The message that is being written, and the files that go with it.
import { NEW_CHAT } from "../notices.js";
import { Observable } from "../observable.js";
import { readAttachment } from "./attachments.js";

export class Drafts extends Observable {
  attachments = [];
  #notices;
  #conversations;
  #reading = 0;
  #isRead = Promise.resolve();
  #failed = 0;

  constructor({ notices, conversations }) {
    super();
    this.#notices = notices;
    this.#conversations = conversations;
  }

  /** Whether files are still being read. */
  get isReading() {
    return this.#reading > 0;
  }

  /** Add files, after those that came before. */
  attach(files, model) {
    this.#reading += 1;
    this.changed();
    const place = this.#conversations.current?.id ?? NEW_CHAT;
    this.#isRead = this.#isRead.then(() => this.#read(files, model, place));
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

  async #read(files, model, place) {
    for (const file of files) {
      try {
        const attachment = await readAttachment(file, model); // others may go meanwhile
        this.attachments = [...this.attachments, attachment];
      } catch (error) {
        this.#failed += 1;
        this.#notices.show(error.message, place);
      }
      this.changed();
    }
    this.#reading -= 1;
    this.changed();
  }
}
