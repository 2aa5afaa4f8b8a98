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
    return resultOf(this.#store("conversations").getAll());
  }

  messages(conversation) {
    return resultOf(this.#store("messages").index("conversation").getAll(conversation));
  }

  /** Call a function with each message, one after another: attachments of all at once may be large. */
  eachMessage(callback) {
    return new Promise((resolve, reject) => {
      const request = this.#store("messages").openCursor();
      request.onerror = () => reject(request.error);
      request.onsuccess = () => {
        if (!request.result) return resolve();
        callback(request.result.value);
        request.result.continue();
      };
    });
  }

  /** Add a conversation with its messages. */
  add(conversation, messages) {
    return this.#finish(["messages", "conversations"], (store, conversations) => {
      conversations.put(conversation);
      for (const message of messages) store.put(message);
    });
  }

  putMessage(message) {
    return this.#finish(["messages"], (store) => store.put(message));
  }

  /** Change fields of a conversation, or add it. Fields that another tab has changed stay. */
  updateConversation(id, fields) {
    return this.#finish(["conversations"], (store) => {
      const found = store.get(id);
      found.onsuccess = () => {
        if (found.result || fields.title) store.put({ ...found.result, ...fields, id }); // else it has been deleted
      };
    });
  }

  deleteConversation(id) {
    return this.#finish(["messages", "conversations"], (messages, conversations) => {
      conversations.delete(id);
      const keys = messages.index("conversation").getAllKeys(id);
      keys.onsuccess = () => keys.result.forEach((each) => messages.delete(each));
    });
  }

  deleteAll() {
    return this.#finish(["messages", "conversations"], (...stores) => stores.forEach((store) => store.clear()));
  }

  #store(name) {
    return this.#opened.transaction(name).objectStore(name);
  }

  /** Change stores, after all changes before, and wait until it is done. Throws QuotaExceededError without space. */
  #finish(names, action) {
    return new Promise((resolve, reject) => {
      const transaction = this.#opened.transaction(names, "readwrite");
      transaction.oncomplete = () => resolve();
      transaction.onabort = transaction.onerror = () => reject(transaction.error);
      action(...names.map((name) => transaction.objectStore(name)));
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
