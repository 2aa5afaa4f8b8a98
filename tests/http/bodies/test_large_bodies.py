"""Large bodies are worked on beside the event loop: one at a time, for clients in turn, and for nobody who left."""

import asyncio
import gzip
import json
import threading
from collections.abc import Callable
from typing import Any

import pytest
from msgspec import Struct

from lmwire_http.http.body import WorkThread
from lmwire_http.http.context import AppState, RequestContext, make_app_state
from lmwire_http.http.endpoint import Endpoint, Json, Reply
from lmwire_http.http.request_handler import RequestHandler
from lmwire_http.settings import Settings
from support.http.http_pool import awaited, until
from support.process.worker_process import SECONDS


class Decoded(Struct, kw_only=True):
    """A body that notes the thread in which it is made."""

    texts: list[str]
    thread: str = ""

    def __post_init__(self) -> None:
        self.thread = threading.current_thread().name


def converting_thread() -> str:
    return threading.current_thread().name


async def name_threads(context: RequestContext, body: Decoded) -> Reply:
    return Json([body.thread, await context.beside_loop(converting_thread)])


class Client:
    """One request to an endpoint. Its client leaves on demand."""

    def __init__(self, state: AppState, handler: Any, body: bytes, encoding: str = "") -> None:
        endpoint = Endpoint(method="POST", path="/", summary="", handler=handler, request_type=Decoded, is_public=True)
        headers = [(b"content-encoding", encoding.encode())] if encoding else []
        scope = {"method": "POST", "path": "/", "headers": headers, "query_string": b""}
        self._arriving = [{"type": "http.request", "body": body}]
        self.left = asyncio.Event()
        self.sent: list[Any] = []
        self.handler = RequestHandler(endpoint, state, scope, self._receive, self._send)

    async def _receive(self) -> Any:
        if self._arriving:
            return self._arriving.pop()
        await self.left.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Any) -> None:
        self.sent.append(message)

    @property
    def answer(self) -> Any:
        return json.loads(b"".join(message.get("body", b"") for message in self.sent))


def encoded(*texts: str) -> bytes:
    return json.dumps({"texts": texts}).encode()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("body", "encoding", "is_large"),
    [
        (encoded("a"), "", False),
        (encoded("a" * 300_000), "", True),
        (encoded(*"a" * 20_000), "", True),
        (gzip.compress(encoded("a")), "gzip", True),
    ],
    ids=["small", "long", "heavy", "compressed"],
)
@awaited
async def test_a_large_body_is_decoded_and_converted_in_a_thread_of_its_own(
    body: bytes, encoding: str, is_large: bool
) -> None:
    client = Client(make_app_state(Settings()), name_threads, body, encoding)
    await client.handler.run()
    main = threading.main_thread().name
    assert [thread != main for thread in client.answer] == [is_large, is_large]


@awaited
async def test_a_client_that_leaves_before_its_turn_costs_no_work() -> None:
    state, may_end = make_app_state(Settings()), threading.Event()
    holder = asyncio.create_task(state.work_thread.run("other", may_end.wait))
    served: list[Decoded] = []

    async def serve(_: RequestContext, body: Decoded) -> Reply:
        served.append(body)
        return Json(None)

    client = Client(state, serve, encoded("a" * 300_000))
    request = asyncio.create_task(client.handler.run())
    await asyncio.sleep(0)
    client.left.set()
    await request
    may_end.set()
    await holder
    assert (served, client.sent) == ([], [])


@awaited
async def test_one_work_runs_at_once_and_clients_are_served_in_turn() -> None:
    thread, may_end, order = WorkThread(), threading.Event(), list[str]()

    def work(name: str) -> Callable[[], None]:
        def run() -> None:
            order.append(name)
            may_end.wait(SECONDS)

        return run

    many = [asyncio.create_task(thread.run("many", work("many"))) for _ in range(20)]
    await until(lambda: order)
    other = asyncio.create_task(thread.run("other", work("other")))
    await asyncio.sleep(0)
    assert order == ["many"]
    may_end.set()
    await asyncio.gather(*many, other)
    assert order.index("other") < 3


@awaited
async def test_work_that_runs_when_its_client_leaves_keeps_its_thread_to_its_end() -> None:
    thread, may_end, started = WorkThread(), threading.Event(), list[int]()

    def work() -> None:
        started.append(1)
        may_end.wait(SECONDS)

    running = asyncio.create_task(thread.run("first", work))
    await until(lambda: started)
    running.cancel()
    following = asyncio.create_task(thread.run("next", converting_thread))
    await asyncio.sleep(0)
    assert not (running.done() or following.done())
    may_end.set()
    await following
    await asyncio.wait((running,))
    assert running.cancelled()
