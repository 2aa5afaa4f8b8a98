"""POST /v1/pdf/text: the text of a PDF, which the chat page adds to a message."""

import asyncio
from typing import Final

from msgspec import Struct

from lmwire.pdf import InvalidPdf, PdfReading, PdfText

from ..errors import invalid_field
from ..http.context import RequestContext
from ..http.endpoint import Endpoint, Json, Reply

_MOST_AT_ONCE: Final = 2
"""Processes that read PDFs at once. Each may take a processor and 1 GiB for a moment."""
_turns: Final = asyncio.Semaphore(_MOST_AT_ONCE)


class PdfRequest(Struct, kw_only=True, forbid_unknown_fields=True):
    """A PDF."""

    file: bytes


async def _read(_: RequestContext, body: PdfRequest) -> Reply:
    try:
        async with _turns:
            reading = await asyncio.to_thread(PdfReading)
            try:
                return Json(await asyncio.to_thread(reading.read, body.file))
            finally:
                reading.end()  # a client that has left waits for nothing
    except InvalidPdf as error:
        raise invalid_field(f"file: {error}", "file") from error


PDF_TEXT: Final = Endpoint(
    method="POST",
    path="/v1/pdf/text",
    summary="Read the text of a PDF.",
    handler=_read,
    request_type=PdfRequest,
    is_form=True,
    response_type=PdfText,
)
