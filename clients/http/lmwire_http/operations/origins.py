"""Web pages: which of them may ask."""

from collections.abc import Mapping, Sequence

from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp

from ..failures import ApiError
from ..settings import Settings


def check_origin(headers: Mapping[str, str], settings: Settings) -> None:
    """Stops pages of other origins where no key does: they could not read the answer, but have the model busy.

    A browser lets any page post to 127.0.0.1, and a page whose name turns to that address even reads the answer.

    Raises:
        ApiError: the request is a page's, and nobody said that this page may ask.
    """
    origin = headers.get("origin")
    if origin is None or settings.api_keys or origin in settings.cors:
        return
    problem = f"pages of {origin} may not ask here: start the server with --cors {origin}, or with an API key"
    raise ApiError(403, problem, code="origin_not_allowed")


def letting_pages_ask(app: ASGIApp, origins: Sequence[str]) -> ASGIApp:
    """Tells browsers that pages of these origins may ask, with a key, and read the answers."""
    return CORSMiddleware(
        app,
        allow_origins=origins,
        allow_methods=["GET", "POST"],
        allow_headers=["*"],
        expose_headers=["x-request-id", "retry-after"],
    )
