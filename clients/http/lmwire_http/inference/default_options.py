"""Options of a generation for which the operator has set a default."""

from typing import Any

from ..settings import Settings


def default_options(settings: Settings) -> dict[str, Any]:
    """Return the options that a request has unless it sets them itself."""
    return {} if settings.default_max_tokens is None else {"max_tokens": settings.default_max_tokens}
