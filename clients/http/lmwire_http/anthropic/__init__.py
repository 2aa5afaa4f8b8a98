"""Endpoints of the Anthropic API."""

from collections.abc import Sequence
from typing import Final

from ..http.endpoint import Endpoint
from .endpoints import COUNT_TOKENS, HELLO, MESSAGES
from .models import ANTHROPIC_MODEL, ANTHROPIC_MODELS

ENDPOINTS: Final[Sequence[Endpoint]] = (MESSAGES, COUNT_TOKENS, ANTHROPIC_MODELS, ANTHROPIC_MODEL, HELLO)
