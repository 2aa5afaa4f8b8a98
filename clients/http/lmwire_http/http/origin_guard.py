"""The first code that sees a request: it keeps web pages of other origins away from a server that asks for no key.

A browser on this machine lets any page send requests to 127.0.0.1. Two kinds of page are refused here:

- One whose own name resolves to this server's address (DNS rebinding). For the browser it is of the same origin, so it
  could even read the answers. Its requests carry that name in Host, which is none of this server's names.
- One of another origin. Its requests carry Origin, or at least `Sec-Fetch-Site: cross-site`. It could read nothing, but
  have a model work.

Neither kind knows an API key. So where a key is needed, the key decides, and Host and origin are not looked at.
"""

import ipaddress
import re
from collections.abc import Sequence
from typing import Final

from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Receive, Scope, Send

from ..errors import ApiError
from ..settings import ANY_ORIGIN
from .app_state import Service
from .request_handler import Exchange
from .routing import dialect_of, refusing

_HOST: Final = re.compile(r"(?:\[(?P<literal>[^\[\]]*)\]|(?P<name>[^:\[\]]*))(?::\d*)?")
_SHOWN: Final = 200
"""Characters of a header in an error."""


class Guard:
    """An ASGI application that passes on to another one what may be answered.

    Args:
        app: The application.
        service: With the settings; it counts and logs what is refused.
    """

    def __init__(self, app: ASGIApp, service: Service) -> None:
        settings = service.settings
        self._app = _with_cors(app, settings.cors) if settings.cors else app
        self._service = service
        self._needs_key = bool(settings.api_keys)
        self._over_unix_socket = settings.uds is not None
        self._names = {name.lower() for name in (settings.host, *settings.host_names)}
        self._origins = frozenset(settings.cors)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""
        if scope["type"] == "http" and (error := self._refusal(scope)):
            endpoint = refusing(dialect_of(scope["path"]), "", lambda: error)
            await Exchange(endpoint, self._service, scope, receive, send).run()
        else:
            await self._app(scope, receive, send)

    def _refusal(self, scope: Scope) -> ApiError | None:
        """Why the request is not answered; None where it is."""
        hosts = _values(scope, b"host")
        if len(hosts) > 1 or (not hosts and scope["http_version"] != "1.0"):
            return ApiError(400, "a request must have one Host header", code="invalid_host")
        if self._needs_key:
            return None
        # A browser always sends Host, and no page reaches a Unix socket.
        if hosts and not self._over_unix_socket and not self._is_own_name(hosts[0]):
            return _forbidden(
                f"this server does not answer to the name {hosts[0][:_SHOWN]}: ask by its address, or start it with "
                "--host-name NAME, or with an API key",
                "host_not_allowed",
            )
        return self._refusal_of_page(_values(scope, b"origin"), _values(scope, b"sec-fetch-site"))

    def _is_own_name(self, host: str) -> bool:
        found = _HOST.fullmatch(host)
        if not found:
            return False
        if found["literal"] is not None:
            return _is_address(found["literal"])
        # No page has `localhost` or an address as its name without being served from there.
        name = found["name"].lower().removesuffix(".")
        return name in self._names or name == "localhost" or name.endswith(".localhost") or _is_address(name)

    def _refusal_of_page(self, origins: Sequence[str], sites: Sequence[str]) -> ApiError | None:
        if ANY_ORIGIN in self._origins or (origins and self._origins.issuperset(origins)):
            return None
        if origins:
            page = origins[0][:_SHOWN]
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


def _forbidden(problem: str, code: str) -> ApiError:
    return ApiError(403, problem, code=code)


def _with_cors(app: ASGIApp, origins: Sequence[str]) -> ASGIApp:
    """Tells browsers that pages of these origins may ask, with a key, and read the answers."""
    return CORSMiddleware(
        app,
        allow_origins=origins,
        allow_methods=["GET", "POST", "DELETE"],
        allow_headers=["*"],
        expose_headers=["x-request-id", "retry-after"],
    )


def _values(scope: Scope, name: bytes) -> list[str]:
    return [value.decode("latin-1").strip() for header, value in scope["headers"] if header == name]


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True
