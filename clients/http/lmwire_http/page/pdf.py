"""POST /v1/pdf/text: the text of a PDF, which the chat page adds to a message."""

import asyncio
from typing import Final

from msgspec import Struct

from lmwire.pdf import InvalidPdf, PdfReading, PdfText

from ..errors import invalid_field
from ..http.context import RequestContext
from ..http.endpoint import Json, Reply, endpoint

_MOST_AT_ONCE: Final = 2
"""Processes that read PDFs at once. Each may take a processor and 1 GiB for a moment."""
_turns: Final = asyncio.Semaphore(_MOST_AT_ONCE)


class PdfRequest(Struct, kw_only=True, forbid_unknown_fields=True):
    """A PDF."""

    file: bytes


@endpoint("POST", "/v1/pdf/text", is_form=True, response_type=PdfText)
async def read_pdf(_: RequestContext, body: PdfRequest) -> Reply:
    """Read the text of a PDF."""
    try:
        async with _turns:
            reading = await asyncio.to_thread(PdfReading)
            try:
                return Json(await asyncio.to_thread(reading.read, body.file))
            finally:
                reading.end()  # a client that has left waits for nothing
    except InvalidPdf as error:
        raise invalid_field(f"file: {error}", "file") from error
