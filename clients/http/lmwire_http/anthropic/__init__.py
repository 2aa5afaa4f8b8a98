"""Endpoints of the Anthropic API."""

from collections.abc import Sequence
from typing import Final

from ..http.endpoint import Endpoint
from .count_tokens import COUNT_TOKENS
from .messages import MESSAGES

ENDPOINTS: Final[Sequence[Endpoint]] = (MESSAGES, COUNT_TOKENS)
