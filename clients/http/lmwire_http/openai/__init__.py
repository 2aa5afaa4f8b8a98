"""Endpoints of the OpenAI API."""

from collections.abc import Mapping, Sequence
from typing import Final

from ..http.endpoint import Endpoint
from .chat.endpoint import count_input_tokens, create_chat_completion
from .completions.endpoint import create_completion
from .embeddings import create_embeddings
from .models import get_model, list_models
from .responses import endpoints as responses
from .speech import create_speech
from .tokenization import apply_template, detokenize, tokenize
from .transcriptions import create_transcription

ENDPOINTS: Final[Sequence[Endpoint]] = (
    create_chat_completion,
    count_input_tokens,
    create_completion,
    list_models,
    get_model,
    create_embeddings,
    create_transcription,
    create_speech,
    tokenize,
    detokenize,
    apply_template,
    *responses.RESPONSES,
)
UNSUPPORTED_PATHS: Final[Mapping[str, str]] = responses.UNSUPPORTED_PATHS
