"""Endpoints of the Anthropic API."""

from collections.abc import Sequence
from typing import Final

from ..http.endpoint import Endpoint
from .count_tokens import COUNT_TOKENS
from .hello import HELLO
from .messages import MESSAGES
from .models import ANTHROPIC_MODEL, ANTHROPIC_MODELS

ENDPOINTS: Final[Sequence[Endpoint]] = (MESSAGES, COUNT_TOKENS, ANTHROPIC_MODELS, ANTHROPIC_MODEL, HELLO)
