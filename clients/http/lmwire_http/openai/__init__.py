"""Endpoints of the OpenAI API."""

from collections.abc import Mapping, Sequence
from typing import Final

from ..http.endpoint import Endpoint
from .chat.endpoint import CHAT, COUNT_TOKENS
from .completions.endpoint import COMPLETIONS
from .embeddings import EMBEDDINGS
from .models import MODEL, MODELS
from .responses import endpoints as responses
from .speech import SPEECH
from .tokenization import APPLY_TEMPLATE, DETOKENIZE, TOKENIZE
from .transcriptions import TRANSCRIPTIONS

ENDPOINTS: Final[Sequence[Endpoint]] = (
    CHAT,
    COUNT_TOKENS,
    COMPLETIONS,
    MODELS,
    MODEL,
    EMBEDDINGS,
    TRANSCRIPTIONS,
    SPEECH,
    TOKENIZE,
    DETOKENIZE,
    APPLY_TEMPLATE,
    *responses.RESPONSES,
)
UNSUPPORTED_PATHS: Final[Mapping[str, str]] = responses.UNSUPPORTED_PATHS
