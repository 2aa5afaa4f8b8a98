"""Endpoints of the Anthropic API."""

from collections.abc import Sequence
from typing import Final

from ..http.endpoint import Endpoint
from .endpoints import count_tokens, create_message, say_hello
from .models import get_model, list_models

ENDPOINTS: Final[Sequence[Endpoint]] = (create_message, count_tokens, list_models, get_model, say_hello)
