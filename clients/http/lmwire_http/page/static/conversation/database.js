// Conversations and messages in IndexedDB. Each message is a record of its own, so that two tabs which write to one
// conversation add to it, and neither overwrites what the other has added.
const NAME = "lmwire";
const VERSION = 1;

export class Database {
  #opened;

  /** Open the database. Throws if this browser or this window keeps none. */
  async open() {
    const request = indexedDB.open(NAME, VERSION);
    request.onupgradeneeded = () => {
      request.result.createObjectStore("conversations", { keyPath: "id" });
      request.result.createObjectStore("messages", { keyPath: "id" }).createIndex("conversation", "conversation");
    };
    this.#opened = await resultOf(request);
    this.#opened.onversionchange = () => this.#opened.close();
  }

  conversations() {
    return resultOf(this.#store("conversations", "readonly").getAll());
  }

  messages(conversation) {
    return resultOf(this.#store("messages", "readonly").index("conversation").getAll(conversation));
  }

  putMessage(message) {
    return this.#finish(this.#store("messages", "readwrite"), (store) => store.put(message));
  }

  /** Change fields of a conversation, or add it. Fields that another tab has changed stay. */
  updateConversation(id, fields) {
    return this.#finish(this.#store("conversations", "readwrite"), (store) => {
      const found = store.get(id);
      found.onsuccess = () => {
        if (found.result || fields.title) store.put({ ...found.result, ...fields, id }); // else it has been deleted
      };
    });
  }

  async deleteConversation(id) {
    const ids = (await this.messages(id)).map((message) => message.id);
    await this.#finish(this.#store("messages", "readwrite"), (store) => ids.forEach((each) => store.delete(each)));
    await this.#finish(this.#store("conversations", "readwrite"), (store) => store.delete(id));
  }

  async deleteAll() {
    for (const name of ["messages", "conversations"]) {
      await this.#finish(this.#store(name, "readwrite"), (store) => store.clear());
    }
  }

  #store(name, mode) {
    return this.#opened.transaction(name, mode).objectStore(name);
  }

  /** Run an action and wait until it is on the disk. Throws QuotaExceededError if there is no more space. */
  #finish(store, action) {
    return new Promise((resolve, reject) => {
      const { transaction } = store;
      transaction.oncomplete = () => resolve();
      transaction.onabort = transaction.onerror = () => reject(transaction.error);
      action(store);
    });
  }
}

function resultOf(request) {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
    request.onblocked = () => reject(new Error("another tab keeps the database open"));
  });
}
