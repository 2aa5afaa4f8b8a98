import { fileURLToPath } from "node:url";
import { app, BrowserWindow, ipcMain, protocol, session } from "electron";
import { ChatService } from "./chat-service.js";
import { perform } from "./commands.js";
import { PAGE_URL, servePage } from "./page-files.js";

const PRELOAD = fileURLToPath(new URL("preload.cjs", import.meta.url));

let window: BrowserWindow | undefined;
let isClosed = false;
const service = new ChatService((event) => window?.webContents.send("lmwire:event", event));

protocol.registerSchemesAsPrivileged([{ scheme: "app", privileges: { standard: true, secure: true } }]);

function openWindow(): void {
  window = new BrowserWindow({
    width: 800,
    height: 700,
    webPreferences: { preload: PRELOAD, contextIsolation: true, sandbox: true, nodeIntegration: false },
  });
  window.webContents.setWindowOpenHandler(() => ({ action: "deny" }));
  window.webContents.on("will-navigate", (event) => event.preventDefault());
  window.on("closed", () => {
    window = undefined;
  });
  void window.loadURL(PAGE_URL);
}

ipcMain.on("lmwire:command", (event, command: unknown) => {
  if (event.senderFrame?.url === PAGE_URL) perform(service, command);
});

app.on("window-all-closed", () => app.quit());

app.on("will-quit", (event) => {
  if (isClosed) return;
  event.preventDefault(); // until the worker's process is gone
  void service.close().finally(() => {
    isClosed = true;
    app.quit();
  });
});

void app.whenReady().then(() => {
  protocol.handle("app", (request) => servePage(request.url));
  session.defaultSession.setPermissionRequestHandler((_contents, _permission, answer) => answer(false));
  openWindow();
});
