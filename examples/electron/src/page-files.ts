import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";

export const PAGE_URL = "app://chat/index.html";

/** Nothing but the page's own files: no inline code, no connections, no frames. */
const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");

/** The files of the page, from dist/src. */
const FILES = new Map([
  ["/index.html", { file: "../../page/index.html", type: "text/html" }],
  ["/style.css", { file: "../../page/style.css", type: "text/css" }],
  ["/page.js", { file: "../page/page.js", type: "text/javascript" }],
]);

/** Return a file of the page, with its security policy. */
export async function servePage(url: string): Promise<Response> {
  const found = FILES.get(new URL(url).pathname);
  if (!found) return new Response("no such file", { status: 404 });
  const headers = {
    "content-type": `${found.type}; charset=utf-8`,
    "content-security-policy": CONTENT_SECURITY_POLICY,
    "x-content-type-options": "nosniff",
  };
  return new Response(await readFile(fileURLToPath(new URL(found.file, import.meta.url))), { headers });
}
