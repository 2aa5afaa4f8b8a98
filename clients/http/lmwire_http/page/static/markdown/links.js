// Links and images that a model writes. It may have been told what to write by a page or a mail that it has read.
import { element } from "./dom.js";

const SAFE_PROTOCOLS = ["http:", "https:", "mailto:"];
const IMAGE_DATA = /^data:image\/(?:png|jpeg|gif|webp|avif);base64,/i;

/** Return a link with these children, or a plain span if the address is not one that a link may have. */
export function link(address, children) {
  const url = safeAddress(address);
  if (!url) return element("span", {}, children);
  return element("a", { href: url, title: url, target: "_blank", rel: "noopener noreferrer nofollow" }, children);
}

/** Return an image whose data is in the text. Any other image is a link: to load it would report the reader. */
export function image(address, alt) {
  if (IMAGE_DATA.test(address)) return element("img", { src: address, alt });
  return link(address, [alt ? `Image: ${alt}` : "Image"]);
}

function safeAddress(address) {
  try {
    const { protocol, href } = new URL(address);
    return SAFE_PROTOCOLS.includes(protocol) ? href : "";
  } catch {
    return "";
  }
}
