// Markdown that may still grow.
import { MarkdownStream } from "../markdown/markdown_stream.js";
import { html, useLayoutEffect, useRef } from "./html.js";

export function Markdown({ text, isComplete, onBlock }) {
  const element = useRef(null);
  const stream = useRef(null);
  const latest = useRef(null);
  latest.current = onBlock;
  useLayoutEffect(() => {
    stream.current ??= new MarkdownStream(element.current, (block) => latest.current?.(block));
    stream.current.update(text, isComplete);
  }, [text, isComplete]);
  return html`<div class="markdown" ref=${element}></div>`;
}
