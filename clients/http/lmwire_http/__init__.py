"""HTTP server with the OpenAI and Anthropic APIs, on workers that speak lmwire's protocol over pipes.

It uses only the Python client's public API. `lmwire serve` starts it; `make_app` returns the ASGI application.
"""

from .app import make_app
from .settings import Settings

__all__ = ["Settings", "make_app"]
