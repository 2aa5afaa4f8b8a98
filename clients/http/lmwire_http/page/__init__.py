"""The chat page: GET / for browsers, and the files that the page consists of."""

from collections.abc import Sequence
from typing import Final

from ..http.endpoint import Endpoint
from .endpoints import FILE, ROOT

ENDPOINTS: Final[Sequence[Endpoint]] = (ROOT, FILE)
