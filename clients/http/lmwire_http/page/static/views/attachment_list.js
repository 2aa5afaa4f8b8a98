// The images, sounds and texts that go with a message.
import { html } from "./html.js";
import { IconButton } from "./icons.js";

export function AttachmentList({ attachments, onRemove }) {
  if (!attachments?.length) return null;
  return html`<ul class="attachments" aria-label="Attachments">
    ${attachments.map(
      (each) => html`<li class="attachment" data-kind=${each.kind}>
        <${Preview} attachment=${each} />
        ${onRemove && html`<${IconButton} icon="close" label="Remove ${each.name}" onClick=${() => onRemove(each)} />`}
      </li>`,
    )}
  </ul>`;
}

function Preview({ attachment: { kind, name, data, note } }) {
  if (kind === "image") return html`<img src=${data} alt=${name} />`;
  if (kind === "sound") return html`<span class="file-name">${name}</span><audio controls src=${data} aria-label=${name} />`;
  return html`<span class="file-name">${name}${note && html` <span class="faint">${note}</span>`}</span>`;
}
