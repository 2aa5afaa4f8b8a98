import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { type TestContext, test } from "node:test";
import { chromium, type Page } from "playwright-core";
import { ChatService } from "../src/chat-service.js";
import { perform } from "../src/commands.js";
import { servePage } from "../src/page-files.js";
import { FOREVER, type Launcher, writeMock } from "./workers.js";

const BROWSER = [
  "/usr/bin/chromium",
  "/usr/bin/google-chrome",
  "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
].find(existsSync);
const PRELOAD = readFileSync(new URL("../src/preload.cjs", import.meta.url), "utf8");
/** Runs the preload script as Electron does, over a bridge in place of Electron's channels. */
const BRIDGE = `(() => {
  const contextBridge = { exposeInMainWorld: (name, api) => { window[name] = api; } };
  const ipcRenderer = {
    send: (channel, command) => window.sendToMain(channel, command),
    on: (channel, listener) => { window["on " + channel] = listener; },
  };
  ((exports, require) => {${PRELOAD}\n})({}, () => ({ contextBridge, ipcRenderer }));
})();`;

/** Open the page in Chromium. The preload script, the page and the service are the app's own. */
async function openPage(test: TestContext, mock: Launcher): Promise<Page> {
  const browser = await chromium.launch({ executablePath: BROWSER!, args: ["--no-sandbox"] });
  test.after(() => browser.close());
  const page = await browser.newPage();
  page.setDefaultTimeout(120_000);
  const service = new ChatService(
    (event) => void page.evaluate((event) => Reflect.get(window, "on lmwire:event")(undefined, event), event),
    { command: [mock.program] },
  );
  test.after(() => service.close());
  await page.exposeFunction("sendToMain", (channel: string, command: unknown) => {
    assert.equal(channel, "lmwire:command");
    perform(service, command);
  });
  await page.addInitScript(BRIDGE);
  await page.route("**/*", async (route) => {
    const { pathname } = new URL(route.request().url());
    const { status, headers, body } = await read(await servePage(`app://chat${pathname}`));
    await route.fulfill({ status, headers, body });
  });
  await page.goto("https://chat.test/index.html");
  return page;
}

async function read(response: Response) {
  return {
    status: response.status,
    headers: Object.fromEntries(response.headers),
    body: Buffer.from(await response.arrayBuffer()),
  };
}

test("the page loads a model, streams a chat, stops it, and survives a crash", async (t) => {
  if (!BROWSER && process.env.CI !== "true") return t.skip("Chromium is not installed");
  const progress = [{ stage: "download", current: 1, total: 9, unit: "bytes", delay_ms: 3_600_000 }];
  const mock = writeMock(
    t,
    FOREVER,
    { match: { last_message: "markup" }, reply: { text: "<b>bold</b>" } },
    { match: { cmd: "load", path: "endless" }, reply: { progress } },
  );
  const page = await openPage(t, mock);
  const status = page.getByRole("status");
  const answers = page.locator(".assistant");
  const ask = async (text: string) => {
    await page.getByLabel("Message").fill(text);
    await page.getByRole("button", { name: "Send" }).click();
  };

  assert(await page.getByRole("button", { name: "Send" }).isDisabled());
  await page.getByLabel("Model").fill("endless");
  await page.getByRole("button", { name: "Load" }).click();
  await page.locator("progress[value]").waitFor();
  await page.getByRole("button", { name: "Stop" }).click();
  await status.getByText("Stopped.").waitFor();
  await page.getByLabel("Model").fill("mock");
  await page.getByRole("button", { name: "Load" }).click();
  await status.getByText("is loaded.").waitFor();

  await ask("Good morning");
  await answers.getByText("Good morning").waitFor();
  await ask("markup");
  await answers.getByText("<b>bold</b>", { exact: true }).waitFor();

  await ask("forever");
  await answers.getByText("on on on").waitFor();
  await page.getByRole("button", { name: "Stop" }).click();
  await status.getByText("Stopped.").waitFor();

  await ask("forever");
  await answers.nth(3).getByText("on on on").waitFor();
  process.kill(mock.pid, "SIGKILL");
  await status.getByText("The next message starts a new worker.").waitFor();
  await ask("Are you there?");
  await answers.getByText("Are you there?").waitFor();
});
