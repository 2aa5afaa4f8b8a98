const NEWLINE = 0x0a;
const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** A line of the worker: its text, or undefined if its bytes are not UTF-8. */
export type Line = string | undefined;

/**
 * Splits the bytes of a stream into lines. A line without its newline is never returned.
 *
 * @param limit - Longest line, in bytes.
 */
export class LineSplitter {
  readonly #limit: number;
  #parts: Buffer[] = [];
  #size = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** True if a line is longer than the limit, whether or not its newline has come. */
  isOverflown = false;

  /** Add bytes, and return the lines that they complete, without their newlines. */
  push(chunk: Buffer): Line[] {
    const end = chunk.lastIndexOf(NEWLINE);
    if (end < 0) {
      this.#keep(chunk);
      return [];
    }
    const whole = this.#size ? Buffer.concat([...this.#parts, chunk.subarray(0, end)]) : chunk.subarray(0, end);
    this.#parts = [];
    this.#size = 0;
    this.#keep(chunk.subarray(end + 1));
    return whole.length <= this.#limit ? split(whole) : this.#upToLimit(whole);
  }

  #keep(rest: Buffer): void {
    if (!rest.length) return;
    this.#parts.push(rest);
    this.#size += rest.length;
    if (this.#size > this.#limit) this.isOverflown = true;
  }

  /** Return the lines before the first one that is too long. */
  #upToLimit(bytes: Buffer): Line[] {
    let start = 0;
    while (start <= bytes.length) {
      const newline = bytes.indexOf(NEWLINE, start);
      const end = newline < 0 ? bytes.length : newline;
      if (end - start > this.#limit) {
        this.isOverflown = true;
        return start ? split(bytes.subarray(0, start - 1)) : [];
      }
      start = end + 1;
    }
    return split(bytes);
  }
}

/** Decode lines together, which is faster, or one by one if some bytes are not UTF-8. */
function split(bytes: Buffer): Line[] {
  try {
    return utf8.decode(bytes).split("\n");
  } catch {
    return splitBytes(bytes).map(decode);
  }
}

function splitBytes(bytes: Buffer): Buffer[] {
  const lines: Buffer[] = [];
  let start = 0;
  for (let end = bytes.indexOf(NEWLINE); end >= 0; end = bytes.indexOf(NEWLINE, start)) {
    lines.push(bytes.subarray(start, end));
    start = end + 1;
  }
  lines.push(bytes.subarray(start));
  return lines;
}

function decode(bytes: Buffer): Line {
  try {
    return utf8.decode(bytes);
  } catch {
    return undefined;
  }
}
