// A line above the conversation: the server is away, or a note.
import { html, useChanges } from "./html.js";
import { IconButton } from "./icons.js";

export function Banner({ state: { connection, notices } }) {
  useChanges(connection, notices);
  return html`<div class="banners" role="status">
    ${connection.state === "offline" &&
    html`<p class="banner warning" data-banner="offline">
      <span class="spinner" /><span>The server does not answer. If it has ended, start it again with <code>lmwire serve</code>: the page goes on.</span>
    </p>`}
    ${notices.text &&
    html`<p class="banner" data-banner="notice">
      <span>${notices.text}</span>
      <${IconButton} icon="close" label="Dismiss" onClick=${() => notices.dismiss()} />
    </p>`}
  </div>`;
}
