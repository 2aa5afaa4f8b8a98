// A line above the conversation: the server is away, or a note.
import { NEW_CHAT } from "../notices.js";
import { html, useChanges } from "./html.js";
import { IconButton } from "./icons.js";

export function Banner({ state: { connection, conversations, notices } }) {
  useChanges(connection, conversations, notices);
  const note = notices.textFor(conversations.current?.id ?? NEW_CHAT);
  return html`<div class="banners" role="status">
    ${connection.state === "offline" &&
    html`<p class="banner warning" data-banner="offline">
      <span class="spinner" /><span>The server does not answer. If it has ended, start it again with <code>lmwire serve</code>: the page goes on.</span>
    </p>`}
    ${note &&
    html`<p class="banner" data-banner="notice">
      <span>${note}</span>
      <${IconButton} icon="close" label="Dismiss" onClick=${() => notices.dismiss()} />
    </p>`}
  </div>`;
}
