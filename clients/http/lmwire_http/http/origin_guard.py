"""Protection of servers without an API key from web pages. It sees each request first.

A browser on this machine lets any web page send requests to 127.0.0.1. Two kinds of page are refused:

- A page whose host name resolves to this server's address (DNS rebinding). The browser treats the server as the page's
  own origin, so the page could read responses. Its requests have that name as their Host, which the server refuses.
- A page of another origin. Its requests have an Origin header, or at least `Sec-Fetch-Site: cross-site`. The page could
  not read responses, but it could start generations.

Neither kind of page knows an API key. On a server with keys, the key decides, and Host and Origin are ignored.
"""

import ipaddress
import re
from collections.abc import Sequence
from typing import Final

from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Receive, Scope, Send

from ..errors import ApiError
from ..settings import ANY_ORIGIN
from .context import AppState
from .request_handler import RequestHandler
from .routing import error_format_of, make_error_endpoint
from .unknown_fields import IGNORED_FIELDS_HEADER

_HOST: Final = re.compile(r"(?:\[(?P<literal>[^\[\]]*)\]|(?P<name>[^:\[\]]*))(?::\d*)?")
_MAX_SHOWN: Final = 200
"""Number of characters of a header in an error message."""


class OriginGuard:
    """ASGI middleware that refuses requests of foreign web pages.

    Args:
        app: The application for all other requests.
        state: The server's state. It counts and logs refused requests.
    """

    def __init__(self, app: ASGIApp, state: AppState) -> None:
        settings = state.settings
        self._app = _with_cors(app, settings.cors_origins) if settings.cors_origins else app
        self._state = state
        self._needs_key = bool(settings.api_keys)
        self._over_unix_socket = settings.unix_socket is not None
        self._host_names = {name.lower() for name in (settings.host, *settings.host_names)}
        self._origins = frozenset(settings.cors_origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle an ASGI connection."""
        if scope["type"] == "http" and (error := self._find_error(scope)):
            endpoint = make_error_endpoint(error_format_of(scope), "", lambda: error)
            await RequestHandler(endpoint, self._state, scope, receive, send).run()
        else:
            await self._app(scope, receive, send)

    def _find_error(self, scope: Scope) -> ApiError | None:
        """Return the error for a refused request; None for other requests."""
        hosts = _header_values(scope, b"host")
        if len(hosts) > 1 or (not hosts and scope["http_version"] != "1.0"):
            return ApiError(400, "a request must have one Host header", code="invalid_host")
        if self._needs_key:
            return None
        # A browser always sends Host, and no page reaches a Unix socket.
        if hosts and not self._over_unix_socket and not self._is_own_name(hosts[0]):
            return _forbidden(
                f"this server does not answer to the name {hosts[0][:_MAX_SHOWN]}: ask by its address, or start it "
                "with --host-name NAME, or with an API key",
                "host_not_allowed",
            )
        origins, sites = _header_values(scope, b"origin"), _header_values(scope, b"sec-fetch-site")
        if hosts and self._is_own_name(hosts[0]) and _is_own_page(hosts[0], origins, sites):
            return None
        return self._origin_error(origins, sites)

    def _is_own_name(self, host: str) -> bool:
        found = _HOST.fullmatch(host)
        if not found:
            return False
        if found["literal"] is not None:
            return _is_address(found["literal"])
        # A page with `localhost` or an address as its host comes from there, so DNS rebinding is impossible.
        name = found["name"].lower().removesuffix(".")
        return name in self._host_names or name == "localhost" or name.endswith(".localhost") or _is_address(name)

    def _origin_error(self, origins: Sequence[str], sites: Sequence[str]) -> ApiError | None:
        if ANY_ORIGIN in self._origins or (origins and self._origins.issuperset(origins)):
            return None
        if origins:
            page = origins[0][:_MAX_SHOWN]
            return _forbidden(
                f"pages of {page} may not ask here: start the server with --cors {page}, or with an API key",
                "origin_not_allowed",
            )
        if "cross-site" in sites:
            return _forbidden(
                "pages of other sites may not ask here: start the server with --cors ORIGIN, or with an API key",
                "origin_not_allowed",
            )
        return None


def _is_own_page(host: str, origins: Sequence[str], sites: Sequence[str]) -> bool:
    """Return whether a request comes from a page of this server, such as /docs.

    Browsers send Sec-Fetch-Site only to https and to this machine, so elsewhere the origin is compared.

    Args:
        host: The Host of the request, which is a name of this server.
        origins: Its Origin headers.
        sites: Its Sec-Fetch-Site headers.
    """
    return [*sites] == ["same-origin"] or [*origins] == [f"http://{host}"]


def _forbidden(problem: str, code: str) -> ApiError:
    return ApiError(403, problem, code=code)


def _with_cors(app: ASGIApp, origins: Sequence[str]) -> ASGIApp:
    """Return the application with CORS headers: pages of these origins may send requests and read responses."""
    return CORSMiddleware(
        app,
        allow_origins=origins,
        allow_methods=["GET", "POST", "DELETE"],
        allow_headers=["*"],
        allow_private_network=True,  # browsers ask for it before a public page may send requests to this machine
        expose_headers=["x-request-id", "request-id", "retry-after", "x-should-retry", IGNORED_FIELDS_HEADER],
    )


def _header_values(scope: Scope, name: bytes) -> list[str]:
    return [value.decode("latin-1").strip() for header, value in scope["headers"] if header == name]


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True
