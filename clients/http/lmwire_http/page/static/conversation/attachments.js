// Files that the user adds to a message.
import { fetchJson } from "../server/client.js";
import { takes } from "../server/models.js";

const MAX_BYTES = 12 * 1024 * 1024;
const MAX_TEXT_BYTES = 512 * 1024;
const TEXT_NAME = /\.(txt|md|json|csv|tsv|xml|ya?ml|toml|ini|log|html?|css|[cm]?[jt]sx?|py|rb|rs|go|java|kt|swift|c|h|cc|cpp|hpp|cs|sh|sql|tex)$/i;

/** Return a file as { kind, name, data, note }. The note is for the user. Throws Error with the reason if it cannot be sent to the model. */
export async function readAttachment(file, model) {
  const kind = kindOf(file);
  const limit = kind === "text" ? MAX_TEXT_BYTES : MAX_BYTES;
  if (!kind) throw new Error(`${file.name}: images, sounds, texts and PDFs can be added.`);
  if (file.size > limit) throw new Error(`${file.name} is larger than ${limit / 1024 / 1024} MB.`);
  if (kind === "image" && takes(model, "images") === false) throw new Error(`${model.id} does not see images.`);
  if (kind === "sound" && takes(model, "sounds") === false) throw new Error(`${model.id} does not hear sounds.`);
  if (kind === "pdf") return readPdf(file);
  return { kind, name: file.name, data: await (kind === "text" ? file.text() : dataUrl(file)) };
}

/** Return the text of a PDF, which the server reads. */
async function readPdf(file) {
  const body = new FormData();
  body.append("file", file);
  const { pages, text, is_whole: isWhole } = await fetchJson("v1/pdf/text", { body }).catch((error) => {
    throw new Error(`${file.name}: ${error.message.replace(/^file: /, "")}`);
  });
  const size = `${Math.max(1, Math.round(file.size / 1024)).toLocaleString("en")} KB`;
  const note = [`${pages} ${pages === 1 ? "page" : "pages"}`, size, !isWhole && "the end is left out"].filter(Boolean).join(" · ");
  return { kind: "text", name: file.name, data: text, note };
}

function kindOf({ type, name }) {
  if (type === "application/pdf" || /\.pdf$/i.test(name)) return "pdf";
  if (type.startsWith("image/") && type !== "image/svg+xml") return "image";
  if (type.startsWith("audio/")) return "sound";
  return type.startsWith("text/") || type === "application/json" || TEXT_NAME.test(name) ? "text" : "";
}

function dataUrl(file) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result);
    reader.onerror = () => reject(new Error(`${file.name} cannot be read.`));
    reader.readAsDataURL(file);
  });
}
