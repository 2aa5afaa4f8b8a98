"""One exchange without a socket, for an endpoint that the test is."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from lmwire_http.http.context import make_app_state
from lmwire_http.http.endpoint import Endpoint, Reply
from lmwire_http.http.request_handler import RequestHandler
from lmwire_http.settings import Settings


class Sent(NamedTuple):
    """The response."""

    status: int
    """0 if there was none."""
    body: bytes

    @property
    def code(self) -> str:
        """The code of an error response."""
        return json.loads(self.body)["error"]["code"]


def exchanged(serve: Callable[..., Awaitable[Reply]], *, leaves: bool = False) -> Sent:
    """Return the response to a client when `serve` is the handler.

    Args:
        serve: The handler.
        leaves: Whether the client closes its connection as soon as it has sent the request.
    """
    messages: list[Any] = []

    async def send(message: Any) -> None:
        messages.append(message)

    async def receive() -> Any:
        if receive_once:
            return receive_once.pop()
        if leaves:
            return {"type": "http.disconnect"}
        return await asyncio.Event().wait()

    receive_once = [{"type": "http.request"}]
    endpoint = Endpoint(method="POST", path="/", summary="", handler=serve, is_public=True)
    scope = {"method": "POST", "path": "/", "headers": [], "query_string": b""}

    async def run() -> None:
        await RequestHandler(endpoint, make_app_state(Settings()), scope, receive, send).run()

    asyncio.run(run())
    if not messages:
        return Sent(0, b"")
    return Sent(messages[0]["status"], b"".join(message.get("body", b"") for message in messages))
