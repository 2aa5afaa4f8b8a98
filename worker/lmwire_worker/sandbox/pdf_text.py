"""The program that reads the text of one PDF: `python -m lmwire_worker.sandbox.pdf_text`.

It reads the PDF from stdin and writes a JSON object to stdout: the number of `pages`, the `text` and whether it
`is_whole`, or the `problem`. A PDF is untrusted, so this process limits its own processor time, memory and files.
"""

import contextlib
import io
import json
import logging
import resource
import signal
import sys
from typing import Any, Final

# Here and not where it is used: later, the limit on files would keep Python from storing its bytecode for the next PDF.
from pypdf import PdfReader
from pypdf.errors import DependencyError, FileNotDecryptedError

MAX_BYTES: Final = 24 * 2**20
MAX_PAGES: Final = 1000
MAX_CHARACTERS: Final = 512 * 1024
_CPU_SECONDS: Final = 20.0
_MEMORY_BYTES: Final = 2**30
_NO_TEXT: Final = "it has no text: its pages are images, which a program for text recognition (OCR) must read first"
_ENCRYPTED: Final = "it is encrypted: save it without its password, and add it again"
_UNREADABLE: Final = "it is not a PDF that can be read"


def read_text(content: bytes) -> dict[str, Any]:
    """Return the text of a PDF, as the program writes it.

    Args:
        content: The file.
    """
    if len(content) > MAX_BYTES:
        return {"problem": f"it is larger than {MAX_BYTES // 2**20} MiB"}
    try:
        reader = PdfReader(io.BytesIO(content))
        if reader.is_encrypted and not reader.decrypt(""):
            return {"problem": _ENCRYPTED}
        return _read_pages(reader)
    except (DependencyError, FileNotDecryptedError):
        return {"problem": _ENCRYPTED}
    except MemoryError:
        raise
    except Exception:  # pypdf raises many kinds for files that are damaged
        return {"problem": _UNREADABLE}


def _read_pages(reader: Any) -> dict[str, Any]:
    count = len(reader.pages)
    parts: list[str] = []
    length = 0
    for page in reader.pages[:MAX_PAGES]:
        part = page.extract_text().strip()
        parts.append(part)
        length += len(part) + 2
        if length > MAX_CHARACTERS:
            break
    text = "\n\n".join(parts).encode(errors="replace").decode()  # fonts may map to lone surrogates
    if not text.strip():
        return {"problem": _NO_TEXT if count else _UNREADABLE}
    is_whole = len(parts) == count and len(text) <= MAX_CHARACTERS
    return {"pages": count, "text": text[:MAX_CHARACTERS], "is_whole": is_whole}


def _limit(what: int, most: int) -> None:
    with contextlib.suppress(OSError, ValueError):  # the system lacks this limit, or has a lower one
        resource.setrlimit(what, (most, most))


def main() -> None:
    """Read one PDF within the limits. A file that exceeds one ends the process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the host to handle
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_PROF, _CPU_SECONDS)
    for what, most in ((resource.RLIMIT_CORE, 0), (resource.RLIMIT_FSIZE, 0), (resource.RLIMIT_AS, _MEMORY_BYTES)):
        _limit(what, most)
    logging.disable()  # its library quotes damaged files
    answer = read_text(sys.stdin.buffer.read(MAX_BYTES + 1))
    sys.stdout.buffer.write(json.dumps(answer).encode())


if __name__ == "__main__":
    main()
