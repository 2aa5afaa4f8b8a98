"""HTTP server with the OpenAI and Anthropic APIs, on workers that speak lmwire's protocol over pipes.

It uses only the Python client's public API. `lmwire serve` starts it; `make_app` returns the ASGI application.
"""

from typing import TYPE_CHECKING, Any

from .settings import Settings

if TYPE_CHECKING:
    from .app import make_app

__all__ = ["Settings", "make_app"]


def __getattr__(name: str) -> Any:
    """Import the application at its first use: the options of `lmwire serve` need none of its libraries."""
    if name != "make_app":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from .app import make_app

    return make_app
