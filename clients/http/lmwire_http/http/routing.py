"""Routing of requests to endpoints by path and method."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from difflib import get_close_matches
from functools import partial
from typing import Any, Final

from starlette.routing import Route, Router
from starlette.types import ASGIApp, Receive, Scope, Send

from ..errors import ApiError
from .context import AppState, RequestContext
from .endpoint import Endpoint, Reply
from .error_formats import ANTHROPIC_ERRORS, OLLAMA_ERRORS, OPENAI_ERRORS, ErrorFormat
from .request_handler import RequestHandler

_ANTHROPIC_PATH: Final = re.compile(r"^/+(?:v1/+)*messages(?:/|$)")
_ANTHROPIC_HEADER: Final = b"anthropic-version"
_OLLAMA_PATH: Final = re.compile(r"^/api/(?!v\d+/|hello)")
"""Other paths below `/api` are those of LM Studio and of Claude Code, such as `/api/v1/models` and `/api/hello`."""
_VERSION: Final = re.compile(r"^/+(?:v1/+)*")
_COMPARED_CHARACTERS: Final = 64
"""Length of a path's start that is compared with those of the endpoints: the time grows with its square."""
Lifespan = Callable[[Any], AbstractAsyncContextManager[None]]


def make_router(
    endpoints: Sequence[Endpoint], unsupported: Mapping[str, str], state: AppState, lifespan: Lifespan
) -> ASGIApp:
    """Return an ASGI application that handles every request, also those without an endpoint.

    Args:
        endpoints: The endpoints.
        unsupported: For each path that is known but not served, what to do instead.
        state: The server's state.
        lifespan: The application's ASGI lifespan.
    """
    by_path: dict[str, list[Endpoint]] = {}
    for endpoint in endpoints:
        by_path.setdefault(endpoint.path, []).append(endpoint)
    routes = [Route(path, _UnsupportedPath(path, message, state)) for path, message in unsupported.items()]
    for path in sorted(by_path, key=lambda path: "{" in path):  # a variable of a path matches also a path of its own
        routes.append(Route(path, _PathRoute(path, by_path[path], state)))
    router = Router(
        routes,
        default=_UnknownPath(sorted(by_path), state),
        redirect_slashes=False,
        lifespan=lifespan,
    )
    return _PathNormalizer(router, by_path)


class _PathNormalizer:
    """Application that accepts the paths of the APIs without `/v1`, with it twice, and with a slash at the end.

    Clients differ in which of these their base URL contains.
    """

    def __init__(self, app: ASGIApp, paths: Iterable[str]) -> None:
        self._app = app
        parts = (path.split("/") for path in paths)
        self._sections = {section for _, version, *rest in parts if version == "v1" for section in rest[:1]}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            rest = _VERSION.sub("", scope["path"]).rstrip("/")
            if rest.partition("/")[0] in self._sections:
                scope["path"] = f"/v1/{rest}"
            elif rest:
                scope["path"] = scope["path"].rstrip("/")
        await self._app(scope, receive, send)


class _PathRoute:
    """The endpoints of one path."""

    def __init__(self, path: str, endpoints: Sequence[Endpoint], state: AppState) -> None:
        # Endpoints with a header come first, since the others serve any request.
        self._endpoints = sorted(endpoints, key=lambda endpoint: endpoint.required_header is None)
        self._path, self._state = path, state
        methods = {endpoint.method for endpoint in endpoints}
        allowed = ", ".join(sorted(methods | ({"HEAD"} if "GET" in methods else set())))
        make_error = partial(ApiError, 405, f"{path} is served by {allowed}", code="method_not_allowed")
        self._make_error = partial(make_error, headers={"allow": allowed})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        endpoint = self._find(scope) or make_error_endpoint(error_format_of(scope), self._path, self._make_error)
        await RequestHandler(endpoint, self._state, scope, receive, send).run()

    def _find(self, scope: Scope) -> Endpoint | None:
        method = "GET" if scope["method"] == "HEAD" else scope["method"]
        return next((each for each in self._endpoints if each.method == method and _has_header(scope, each)), None)


class _UnsupportedPath:
    """The response for a path of an API that the server does not have."""

    def __init__(self, path: str, message: str, state: AppState) -> None:
        self._make_error = partial(ApiError, 501, message, code="unsupported")
        self._path, self._state = path, state

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        endpoint = make_error_endpoint(error_format_of(scope), self._path, self._make_error)
        await RequestHandler(endpoint, self._state, scope, receive, send).run()


class _UnknownPath:
    """The response for paths without an endpoint."""

    def __init__(self, known: Sequence[str], state: AppState) -> None:
        self._known, self._state = known, state

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        make_error = partial(ApiError, 404, self._problem(scope["path"]), code="unknown_path")
        endpoint = make_error_endpoint(error_format_of(scope), "", make_error)
        await RequestHandler(endpoint, self._state, scope, receive, send).run()

    def _problem(self, path: str) -> str:
        similar = get_close_matches(path[:_COMPARED_CHARACTERS], self._known)
        hint = f"did you mean {' or '.join(similar)}? " if similar else ""
        return f"there is nothing at this path; {hint}these are served: {', '.join(self._known)}"


def make_error_endpoint(error_format: ErrorFormat, path: str, make_error: Callable[[], ApiError]) -> Endpoint:
    """Return an endpoint that responds to every request with an error.

    Args:
        error_format: The format of the error.
        path: The path for metrics and logs.
        make_error: Returns the error.
    """

    async def fail(_: RequestContext, __: object) -> Reply:
        raise make_error()

    return Endpoint(
        method="",
        path=path,
        summary="",
        handler=fail,
        error_format=error_format,
        is_public=True,
        always_fails_with=make_error,
    )


def error_format_of(scope: Scope) -> ErrorFormat:
    """Return the format of errors that a request without an endpoint expects."""
    if _OLLAMA_PATH.match(scope["path"]):
        return OLLAMA_ERRORS
    is_anthropic = _ANTHROPIC_PATH.match(scope["path"]) or _ANTHROPIC_HEADER in _header_names(scope)
    return ANTHROPIC_ERRORS if is_anthropic else OPENAI_ERRORS


def _has_header(scope: Scope, endpoint: Endpoint) -> bool:
    return endpoint.required_header is None or endpoint.required_header.encode() in _header_names(scope)


def _header_names(scope: Scope) -> set[bytes]:
    return {name for name, _ in scope["headers"]}
