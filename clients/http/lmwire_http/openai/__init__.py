"""The APIs in OpenAI's shapes."""

from collections.abc import Sequence
from typing import Final

from ..endpoint import Endpoint
from .chat import CHAT
from .completions import COMPLETIONS

ENDPOINTS: Final[Sequence[Endpoint]] = (CHAT, COMPLETIONS)
