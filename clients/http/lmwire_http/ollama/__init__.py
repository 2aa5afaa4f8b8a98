"""Endpoints of Ollama's API. Its bodies and answers are those of Ollama's api/types.go.

See https://github.com/ollama/ollama/blob/main/docs/api.md.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from ..http.endpoint import Endpoint
from .embed import EMBED, EMBEDDINGS
from .endpoints import CHAT, GENERATE
from .models import PS, SHOW, TAGS, VERSION
from .pull import PULL

ENDPOINTS: Final[Sequence[Endpoint]] = (CHAT, GENERATE, EMBED, EMBEDDINGS, TAGS, PS, SHOW, PULL, VERSION)
_FOLDERS: Final = "models are folders in the Hugging Face format"
UNSUPPORTED_PATHS: Final[Mapping[str, str]] = {
    "/api/push": f"models are not pushed from here: {_FOLDERS}; upload one with `hf upload`",
    "/api/create": f"models are not created here: {_FOLDERS}; start `lmwire serve FOLDER` with one",
    "/api/copy": "models have no copies here; start `lmwire serve` with the name that clients use",
    "/api/delete": "models are not deleted here; remove one from the cache with `hf cache delete`",
    "/api/blobs/{digest}": f"models are not created here: {_FOLDERS}; start `lmwire serve FOLDER` with one",
}
"""Paths of Ollama's API that are not served, and what to do instead."""
