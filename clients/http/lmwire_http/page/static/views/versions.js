// The switch between versions of a message.
import { html } from "./html.js";
import { IconButton } from "./icons.js";

export function Versions({ message, conversations }) {
  const versions = conversations.versionsOf(message);
  if (versions.length < 2) return null;
  const place = versions.findIndex(({ id }) => id === message.id);
  const show = (index) => conversations.show(versions[index]);
  return html`<span class="versions">
    <${IconButton} icon="left" label="Earlier version" disabled=${place === 0} onClick=${() => show(place - 1)} />
    <span aria-label="Version ${place + 1} of ${versions.length}" role="img">${place + 1}/${versions.length}</span>
    <${IconButton}
      icon="right"
      label="Later version"
      disabled=${place === versions.length - 1}
      onClick=${() => show(place + 1)}
    />
  </span>`;
}
