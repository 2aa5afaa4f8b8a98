"""The chat page: GET / for browsers, the files that the page consists of, and the text of PDFs for it."""

from collections.abc import Sequence
from typing import Final

from ..http.endpoint import Endpoint
from .endpoints import serve_file, serve_root
from .pdf import read_pdf

ENDPOINTS: Final[Sequence[Endpoint]] = (serve_root, serve_file, read_pdf)
