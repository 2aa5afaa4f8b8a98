// The state of the page, put together: each part notifies the views that read it.
import { Answering } from "./conversation/answering.js";
import { Conversations } from "./conversation/conversations.js";
import { Drafts } from "./conversation/drafts.js";
import { Connection } from "./server/connection.js";
import { Models } from "./server/models.js";
import { Notices } from "./notices.js";

export function createState() {
  const notices = new Notices();
  const connection = new Connection();
  const models = new Models(connection);
  const conversations = new Conversations(notices);
  const answering = new Answering({ conversations, models, connection });
  const drafts = new Drafts(notices);
  async function start() {
    connection.onReconnect(() => models.refresh());
    document.addEventListener("visibilitychange", () => {
      if (document.visibilityState === "visible") models.refresh();
      else conversations.flush();
    });
    addEventListener("pagehide", () => conversations.leave());
    await models.refresh();
  }
  return { notices, connection, models, conversations, answering, drafts, start };
}
