// The state of the page, put together: each part notifies the views that read it.
import { Answering } from "./conversation/answering.js";
import { Conversations } from "./conversation/conversations.js";
import { Drafts } from "./conversation/drafts.js";
import { ToolRuns } from "./conversation/tool_runs.js";
import { Connection } from "./server/connection.js";
import { Downloads, endOf } from "./server/downloads.js";
import { Models } from "./server/models.js";
import { Tools } from "./server/tools.js";
import { Notices } from "./notices.js";

export function createState() {
  const notices = new Notices();
  const connection = new Connection();
  const models = new Models(connection);
  const conversations = new Conversations(notices);
  const downloads = new Downloads((download) => {
    notices.show(endOf(download));
    models.refresh();
  });
  const tools = new Tools();
  const toolRuns = new ToolRuns({ conversations, tools });
  const answering = new Answering({ conversations, models, connection, toolRuns });
  const drafts = new Drafts({ notices, conversations });
  async function start() {
    connection.onReconnect(() => (models.refresh(), tools.refresh(), downloads.refresh()));
    document.addEventListener("visibilitychange", () => {
      if (document.visibilityState === "visible") models.refresh();
      else conversations.flush();
    });
    addEventListener("pagehide", () => conversations.leave());
    await Promise.all([models.refresh(), tools.refresh(), downloads.refresh()]);
  }
  return { notices, connection, models, downloads, conversations, answering, drafts, tools, toolRuns, start };
}
