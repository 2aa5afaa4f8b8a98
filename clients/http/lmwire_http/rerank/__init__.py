"""The API of rerankers that Jina, Cohere and vLLM share."""

from collections.abc import Sequence
from typing import Final

from ..http.endpoint import Endpoint
from .endpoint import RERANK, RERANK_V2

ENDPOINTS: Final[Sequence[Endpoint]] = (RERANK, RERANK_V2)
