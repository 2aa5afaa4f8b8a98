"""The APIs in OpenAI's shapes."""

from collections.abc import Sequence
from typing import Final

from ..http.endpoint import Endpoint
from .chat import CHAT
from .completions import COMPLETIONS
from .embeddings import EMBEDDINGS
from .models import MODEL, MODELS
from .responses import RESPONSES
from .transcriptions import TRANSCRIPTIONS

ENDPOINTS: Final[Sequence[Endpoint]] = (CHAT, COMPLETIONS, MODELS, MODEL, EMBEDDINGS, TRANSCRIPTIONS, *RESPONSES)
