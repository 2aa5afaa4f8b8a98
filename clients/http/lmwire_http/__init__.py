"""lmwire over HTTP: OpenAI's and Anthropic's APIs, served by workers that speak lmwire's protocol over their pipes.

It is written on the Python client's public API. `lmwire serve` starts it; `make_app` is the ASGI application.
"""

from .app import make_app
from .settings import Settings

__all__ = ["Settings", "make_app"]
