"""The text of PDF files, for models that read text. A process with limits reads each file, since it is untrusted."""

import subprocess
from importlib.util import find_spec
from typing import Final

import msgspec

from lmwire_protocol.extras import not_installed

from .child_process import child_environment, python_command
from .errors import LmwireError

_TIMEOUT_S: Final = 120.0
"""Longest time of a process, in seconds on the clock. It limits its own processor time."""


class InvalidPdf(LmwireError):
    """A PDF whose text cannot be read. The message says why, and what to do."""


class PdfText(msgspec.Struct, frozen=True, kw_only=True):
    """The text of a PDF."""

    pages: int
    """The number of pages of the file."""
    text: str
    is_whole: bool
    """False if the file has more pages or text than the limits allow, so that the end is missing."""


class _Answer(msgspec.Struct):
    """Answer of the process."""

    problem: str = ""
    pages: int = 0
    text: str = ""
    is_whole: bool = True


class PdfReading:
    """A process that reads a PDF. Any thread may end it.

    Raises:
        InvalidPdf: The package `pypdf` is not installed.
    """

    def __init__(self) -> None:
        if not find_spec("pypdf"):
            raise InvalidPdf(not_installed("pypdf", "pdf", purpose="reads PDF files"))
        command = python_command("lmwire_worker.sandbox.pdf_text")
        pipe, nothing = subprocess.PIPE, subprocess.DEVNULL
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=nothing, env=child_environment())

    def read(self, content: bytes) -> PdfText:
        """Return the text.

        Args:
            content: The file.

        Raises:
            InvalidPdf: The text cannot be read.
        """
        with self._process as process:
            try:
                output, _ = process.communicate(content, timeout=_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                process.kill()
                output = b""
        try:
            answer = msgspec.json.decode(output, type=_Answer)
        except msgspec.DecodeError:
            raise InvalidPdf("it takes too much time or memory to read") from None
        if answer.problem:
            raise InvalidPdf(answer.problem)
        return PdfText(pages=answer.pages, text=answer.text, is_whole=answer.is_whole)

    def end(self) -> None:
        """End the process. A `read` in progress fails."""
        self._process.kill()


def read_pdf(content: bytes) -> PdfText:
    """Return the text of a PDF; `PdfReading.read` has the argument and the errors."""
    return PdfReading().read(content)


__all__ = ["InvalidPdf", "PdfReading", "PdfText", "read_pdf"]
