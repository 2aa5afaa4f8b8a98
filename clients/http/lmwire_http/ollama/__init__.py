"""Endpoints of Ollama's API. Its bodies and answers are those of Ollama's api/types.go.

See https://github.com/ollama/ollama/blob/main/docs/api.md.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from ..http.endpoint import Endpoint
from .embed import embed_inputs, embed_prompt
from .endpoints import answer_chat, answer_prompt
from .models import get_version, list_loaded, list_models, show_model
from .pull import pull_model

ENDPOINTS: Final[Sequence[Endpoint]] = (
    answer_chat,
    answer_prompt,
    embed_inputs,
    embed_prompt,
    list_models,
    list_loaded,
    show_model,
    pull_model,
    get_version,
)
_FOLDERS: Final = "models are folders in the Hugging Face format"
UNSUPPORTED_PATHS: Final[Mapping[str, str]] = {
    "/api/push": f"models are not pushed from here: {_FOLDERS}; upload one with `hf upload`",
    "/api/create": f"models are not created here: {_FOLDERS}; start `lmwire serve FOLDER` with one",
    "/api/copy": "models have no copies here; start `lmwire serve` with the name that clients use",
    "/api/delete": "models are not deleted here; remove one from the cache with `hf cache delete`",
    "/api/blobs/{digest}": f"models are not created here: {_FOLDERS}; start `lmwire serve FOLDER` with one",
}
"""Paths of Ollama's API that are not served, and what to do instead."""
