import electron = require("electron");

import type { ChatEvent, Command, LmwireApi } from "./api.js" with { "resolution-mode": "import" };

const { contextBridge, ipcRenderer } = electron;

function send(command: Command): void {
  ipcRenderer.send("lmwire:command", command);
}

// The page gets these functions and not ipcRenderer, which would open every channel to it.
const api: LmwireApi = {
  load: (model) => send({ type: "load", model }),
  chat: (text) => send({ type: "chat", text }),
  stop: () => send({ type: "stop" }),
  onEvent: (listener) => {
    ipcRenderer.on("lmwire:event", (_event, event: ChatEvent) => listener(event));
  },
};

contextBridge.exposeInMainWorld("lmwire", api);
