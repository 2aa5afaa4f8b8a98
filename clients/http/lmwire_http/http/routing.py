"""From a request's path and method to the endpoint that serves it."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Any, Final

from starlette.routing import Route, Router
from starlette.types import Receive, Scope, Send

from ..errors import ApiError
from .app_state import Service
from .context import Call
from .endpoint import Endpoint
from .error_formats import ANTHROPIC, OPENAI, Dialect
from .replies import Reply
from .request_handler import Exchange

_ANTHROPIC_PATH: Final = "/v1/messages"
Lifespan = Callable[[Any], AbstractAsyncContextManager[None]]


def make_router(endpoints: Sequence[Endpoint], service: Service, lifespan: Lifespan) -> Router:
    """An ASGI application that answers every request, those for which there is no endpoint too."""
    by_path: dict[str, dict[str, Endpoint]] = {}
    for endpoint in endpoints:
        by_path.setdefault(endpoint.path, {})[endpoint.method] = endpoint
    return Router(
        [Route(path, _OnePath(path, methods, service)) for path, methods in by_path.items()],
        default=_Nowhere(sorted(by_path), service),
        redirect_slashes=False,
        lifespan=lifespan,
    )


class _OnePath:
    """What is served at one path, by method."""

    def __init__(self, path: str, methods: Mapping[str, Endpoint], service: Service) -> None:
        self._methods = {**methods, "HEAD": methods["GET"]} if "GET" in methods else methods
        self._service = service
        allowed = ", ".join(sorted(self._methods))
        refusal = partial(ApiError, 405, f"{path} is served by {allowed}", code="method_not_allowed")
        self._unserved = refusing(dialect_of(path), path, partial(refusal, headers={"allow": allowed}))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        endpoint = self._methods.get(scope["method"], self._unserved)
        await Exchange(endpoint, self._service, scope, receive, send).run()


class _Nowhere:
    """Any other path."""

    def __init__(self, known: Sequence[str], service: Service) -> None:
        message = f"there is nothing at this path; these are served: {', '.join(known)}"
        refusal = partial(ApiError, 404, message, code="unknown_path")
        self._endpoints: dict[Dialect, Endpoint] = {
            dialect: refusing(dialect, "", refusal) for dialect in (OPENAI, ANTHROPIC)
        }
        self._service = service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        endpoint = self._endpoints[dialect_of(scope["path"])]
        await Exchange(endpoint, self._service, scope, receive, send).run()


def refusing(dialect: Dialect, path: str, refusal: Callable[[], ApiError]) -> Endpoint:
    """Return an endpoint that answers every request with an error.

    Args:
        dialect: How the error is written.
        path: The path for metrics and logs.
        refusal: Makes the error.
    """

    async def serve(_: Call, __: object) -> Reply:
        raise refusal()

    return Endpoint(method="", path=path, summary="", serve=serve, dialect=dialect, open=True, refusal=refusal)


def dialect_of(path: str) -> Dialect:
    """Return how errors at a path are written."""
    return ANTHROPIC if path.startswith(_ANTHROPIC_PATH) else OPENAI
