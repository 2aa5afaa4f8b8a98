"""The chat page: GET / for browsers, the files that the page consists of, and the text of PDFs for it."""

from collections.abc import Sequence
from typing import Final

from ..http.endpoint import Endpoint
from .endpoints import FILE, ROOT
from .pdf import PDF_TEXT

ENDPOINTS: Final[Sequence[Endpoint]] = (ROOT, FILE, PDF_TEXT)
