"""The server's application in the test's own event loop, with a mock worker, and without sockets."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from lmwire_http.app import make_app_with_state
from lmwire_http.http.context import make_app_state
from lmwire_http.settings import Settings
from support.http.asgi_exchange import Sent
from support.http.http_pool import MOCK


class LocalApp:
    """The running application.

    Args:
        app: The ASGI application.
    """

    def __init__(self, app: Any) -> None:
        self._app = app

    async def post(self, path: str, body: bytes, **headers: str) -> Sent:
        """Return the response to a request. Underscores in a header's name become hyphens."""
        named = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
        scope = {"type": "http", "method": "POST", "path": path, "headers": [(b"host", b"localhost"), *named]}
        messages: list[Any] = []
        arriving = [{"type": "http.request", "body": body}]

        async def receive() -> Any:
            return arriving.pop() if arriving else await asyncio.Event().wait()

        async def send(message: Any) -> None:
            messages.append(message)

        await self._app(scope | {"query_string": b"", "client": ("127.0.0.1", 1)}, receive, send)
        return Sent(messages[0]["status"], b"".join(message.get("body", b"") for message in messages))


@asynccontextmanager
async def local_app(**settings: Any) -> AsyncIterator[LocalApp]:
    """The application with these settings, which ends with the block."""
    state = make_app_state(Settings(worker_command=MOCK, **settings))
    state.startup.begin(state.pool.start())
    try:
        await state.startup.wait()
        yield LocalApp(make_app_with_state(state))
    finally:
        await state.pool.close()
