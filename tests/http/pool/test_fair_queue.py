"""Clients are served in turn: one that sends much does not make another wait for all of it."""

import asyncio
import json
import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import pytest

from lmwire_http.http.api_keys import identify_client
from lmwire_http.pool import Lease
from lmwire_http.pool.fair_queue import LOOKAHEAD_DIVISOR, FairQueue
from lmwire_http.pool.managed_model import MAX_DECODING, MAX_PROMPTS
from support.http.http_pool import MOCK as COMMAND
from support.http.http_pool import awaited, pooled, until
from support.http.http_server import MOCK, Server, served, served_process, stopped_worker, wait_until
from support.http.raw_http import CHAT, RawClient, asked, chat_body

ROWS = 64
"""The mock worker's."""
OUTSTANDING = ROWS + ROWS // LOOKAHEAD_DIVISOR
MANY = 16
REQUESTS = 63
GREEDY, MODEST = "greedy-key", "modest-key"
WAITING = "lmwire_model_requests_waiting"
IN_FLIGHT = "lmwire_worker_requests_in_flight"
IMAGE = "data:image/png;base64,iVBORw0KGgo="
HELD = f"{MOCK} --scenario {Path(__file__).parents[1] / 'held_answers.json'}"


class Queue:
    """A queue for a number of rows, with the order in which requests were served."""

    def __init__(self, rows: int) -> None:
        self.turns = FairQueue(lambda: rows)
        self.served: list[str] = []
        self.ends: dict[str, asyncio.Event] = {}
        self.tasks: dict[str, asyncio.Task[None]] = {}

    async def ask(self, name: str, client: str, rows: int = 1) -> None:
        """Send a request, which takes its rows until it is ended."""
        self.ends[name] = asyncio.Event()
        self.tasks[name] = asyncio.create_task(self._run(name, client, rows))
        await asyncio.sleep(0)

    async def end(self, name: str) -> None:
        self.ends[name].set()
        await self.tasks[name]
        await asyncio.sleep(0)

    async def leave(self, name: str) -> None:
        self.tasks[name].cancel()
        await asyncio.wait([self.tasks[name]])
        await asyncio.sleep(0)

    async def _run(self, name: str, client: str, rows: int) -> None:
        async with self.turns.enter(client, rows):
            self.served.append(name)
            await self.ends[name].wait()


@awaited
async def test_requests_for_free_rows_do_not_wait() -> None:
    queue = Queue(8)
    for number in range(9):
        await queue.ask(str(number), "a")
    assert len(queue.served) == 9, "the next one is there when a row is free"
    await queue.ask("one more", "a")
    assert "one more" not in queue.served


@awaited
async def test_a_clients_requests_are_served_in_their_order() -> None:
    queue = Queue(1)
    for name in "abcd":
        await queue.ask(name, "a")
    for name in "abcd":
        await queue.end(name)
    assert queue.served == [*"abcd"]


@awaited
async def test_clients_are_served_in_turn() -> None:
    queue = Queue(1)
    for name in ("a1", "a2", "a3", "a4", "a5", "b1", "b2"):
        await queue.ask(name, name[0])
    for name in ("a1", "a2", "a3", "b1", "a4", "b2"):
        await queue.end(name)
    assert queue.served == ["a1", "a2", "a3", "b1", "a4", "b2", "a5"]


@awaited
async def test_a_request_for_many_answers_counts_as_many() -> None:
    queue = Queue(1)
    await queue.ask("first", "a", 4)
    for name in ("a1", "a2"):
        await queue.ask(name, "a", 4)
    for number in range(9):
        await queue.ask(f"b{number}", "b")
    for number in range(12):
        await queue.end(queue.served[number])
    assert queue.served == ["first", "b0", "b1", "b2", "a1", "b3", "b4", "b5", "b6", "a2", "b7", "b8"]


@awaited
async def test_a_large_request_is_not_put_off_for_ever_by_clients_that_are_new_each_time() -> None:
    queue = Queue(1)
    await queue.ask("first", "a", MANY)
    await queue.ask("large", "a", MANY)
    for number in range(3 * MANY):
        await queue.ask(f"small {number}", f"client {number}")
        await queue.end(queue.served[number])
    assert queue.served[1] == "small 0"
    assert "large" in queue.served


@awaited
async def test_a_request_that_leaves_the_queue_costs_its_client_nothing() -> None:
    queue = Queue(1)
    for name in ("a1", "a2", "a3", "a4", "a5", "b1", "b2", "b3"):
        await queue.ask(name, name[0])
    for name in ("b1", "b2"):
        await queue.leave(name)
    for number in range(4):
        await queue.end(queue.served[number])
    assert queue.served == ["a1", "a2", "a3", "b3", "a4", "a5"]


@awaited
async def test_a_request_that_leaves_at_its_turn_gives_it_to_the_next() -> None:
    queue = Queue(1)
    for name in ("a", "b", "c", "d"):
        await queue.ask(name, name)
    queue.ends["a"].set()
    queue.tasks["c"].cancel()
    await until(lambda: "d" in queue.served)


@awaited
async def test_requests_that_generate_nothing_do_not_wait() -> None:
    queue = Queue(1)
    for name in ("a", "b", "c"):
        await queue.ask(name, "a")
    await queue.ask("count", "a", 0)
    assert "count" in queue.served


@awaited
async def test_clients_that_only_count_tokens_are_served_in_turn_and_wait_for_no_answer() -> None:
    """A thousand counts of one client would all be made before the next prompt of another."""
    async with pooled(worker_command=COMMAND) as pool, asyncio.TaskGroup() as tasks:
        served: list[str] = []
        end = asyncio.Event()

        async def use(name: str, rows: int) -> None:
            async with pool.lease("mock", client=name, rows=rows):
                served.append(name)
                await end.wait()

        for _ in range(OUTSTANDING + 1):
            tasks.create_task(use("answer", 1))
        await until(lambda: len(served) == OUTSTANDING)
        for _ in range(MANY):
            tasks.create_task(use("greedy", 0))
        await until(lambda: "greedy" in served)
        tasks.create_task(use("modest", 0))
        await until(lambda: served.count("greedy") == MAX_PROMPTS + 1)
        await asyncio.sleep(0)
        end.set()
        await until(lambda: "modest" in served)
    place = served.index("modest")
    assert served[OUTSTANDING:place].count("greedy") <= MAX_PROMPTS + 2


@awaited
async def test_clients_that_send_images_are_served_in_turn_and_hold_up_no_texts() -> None:
    """A worker knows no clients: it would decode a hundred images of one before the next image of another."""
    async with pooled(worker_command=COMMAND) as pool, asyncio.TaskGroup() as tasks:
        served: list[str] = []
        leases: list[Lease] = []
        end = asyncio.Event()

        async def use(name: str, has_media: bool) -> None:
            async with pool.lease("mock", client=name, rows=1, has_media=has_media) as lease:
                served.append(name)
                if name == "greedy":
                    leases.append(lease)
                await end.wait()

        for _ in range(MANY):
            tasks.create_task(use("greedy", True))
        await until(lambda: served.count("greedy") == MAX_DECODING + 1)
        tasks.create_task(use("modest", True))
        await asyncio.sleep(0)
        tasks.create_task(use("text", False))
        await until(lambda: "text" in served)
        assert "modest" not in served
        leases.pop().media_decoded()
        leases.pop().media_decoded()
        await until(lambda: len(served) == MAX_DECODING + 4)
        assert served[MAX_DECODING + 2 :].count("modest") == 1
        end.set()


DECODES: Final = {
    "rules": [
        {"match": {"last_message": "decode"}, "reply": {"delay_ms": 3_600_000, "tokens": []}},
        {
            "match": {"last_message": "seen"},
            "reply": {"progress": [{"stage": "prefill", "current": 1, "total": 2, "unit": "tokens"}], "then": "wait"},
        },
    ]
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "has_image", "at_once"),
    [("decode", True, MAX_DECODING + 1), ("seen", True, MANY), ("decode", False, MANY)],
    ids=["images", "images that were decoded", "texts"],
)
def test_images_wait_until_those_of_others_are_decoded(
    tmp_path: Path, text: str, has_image: bool, at_once: int
) -> None:
    (tmp_path / "decodes.json").write_text(json.dumps(DECODES))
    image = {"type": "image_url", "image_url": {"url": IMAGE}}
    content = [{"type": "text", "text": text}, *([image] if has_image else [])]
    message = {"role": "user", "content": content}
    body = {"model": "mock", "stream": True, "messages": [message], "strict_media": False}
    with (
        served("mock", "--worker", f"{MOCK} --scenario {tmp_path / 'decodes.json'}") as server,
        ExitStack() as clients,
    ):
        for _ in range(MANY):
            clients.enter_context(RawClient(server.url)).ask("POST", CHAT, body)
        wait_until(lambda: users(server, None) == MANY, "they do not come")
        server.wait_for(IN_FLIGHT, at_once)
        server.wait_for(WAITING, MANY - at_once, model="mock")


LOCAL, OTHER, REMOTE = ("127.0.0.1", 1), ("127.0.0.1", 2), ("192.0.2.7", 1)


@pytest.mark.parametrize(
    ("one", "another", "same"),
    [
        ((LOCAL, None, ()), (OTHER, None, ()), False),
        ((("::1", 1), None, ()), (("::1", 2), None, ()), False),
        ((("::ffff:127.0.0.1", 1), None, ()), (("::ffff:127.0.0.1", 2), None, ()), False),
        ((("unix", 1), None, ()), (("unix", 2), None, ()), False),
        ((REMOTE, None, ()), (("192.0.2.7", 2), None, ()), True),
        ((REMOTE, None, ()), (("192.0.2.8", 1), None, ()), False),
        ((LOCAL, 0, ("a", "b")), (REMOTE, 0, ("a", "b")), True),
        ((LOCAL, 0, ("a", "b")), (LOCAL, 1, ("a", "b")), False),
        ((LOCAL, 0, ("a",)), (REMOTE, 0, ("a",)), False),
    ],
)
def test_a_client_is_a_key_of_several_an_address_or_a_connection(one: Any, another: Any, same: bool) -> None:
    assert (identify_client(*one) == identify_client(*another)) is same


def users(server: Server, key: str | None) -> int:
    """Requests for the model, in the queue and on the worker, as /metrics has them."""
    text = asked(server.url, "GET", "/metrics", **authorized(key)).body.decode()
    return int(
        sum(float(found[2]) for found in re.finditer(rf"^({WAITING}|{IN_FLIGHT}){{.*}} (\S+)$", text, re.MULTILINE))
    )


def authorized(key: str | None) -> dict[str, str]:
    return {"authorization": f"Bearer {key}"} if key else {}


@pytest.mark.slow
@pytest.mark.parametrize("keys", [(GREEDY, MODEST), (None, None)], ids=["keys", "connections"])
@pytest.mark.parametrize(
    ("model", "worker", "tokens"),
    [
        ("mock", ["--worker", f"{MOCK} --token-ms 20"], 20),
        pytest.param("builtin:tiny", [], 40, marks=pytest.mark.nightly),
    ],
    ids=["mock", "real model"],
)
def test_one_clients_many_large_requests_do_not_hold_up_anothers_small_one(
    keys: tuple[str | None, str | None], model: str, worker: list[str], tokens: int
) -> None:
    greedy_key, modest_key = keys
    options = [word for key in keys if key for word in ("--api-key", key)]
    with served_process(model, *worker, *options) as server, ExitStack() as clients:

        def ask(key: str | None, id: str, n: int) -> RawClient:
            client = clients.enter_context(RawClient(server.url))
            body = chat_body("hello", model=model, max_tokens=tokens, n=n)
            client.ask("POST", CHAT, body, x_request_id=id, **authorized(key))
            return client

        assert ask(greedy_key, "first", 1).answer().status == 200
        with stopped_worker(server):
            for number in range(REQUESTS):
                ask(greedy_key, f"greedy-{number}", MANY)
            wait_until(lambda: users(server, greedy_key) == REQUESTS, "they do not come")
            modest = ask(modest_key, "modest", 1)
            wait_until(lambda: users(server, greedy_key) == REQUESTS + 1, "it does not come")
        assert modest.answer().status == 200
        end = server.log.index(server.wait_for_line("request_id=modest"))
        before = sum("request_id=greedy" in line for line in server.log[:end])
        assert before <= 4 * ROWS // MANY, f"{before} of {REQUESTS} were answered before"


@pytest.fixture
def full_server() -> Iterator[Server]:
    """One whose worker's rows are all taken by requests that do not end, and one more for each eight."""
    with served("mock", "--worker", HELD) as server, ExitStack() as clients:
        for _ in range(OUTSTANDING):
            clients.enter_context(RawClient(server.url)).chat("wait", stream=True)
        server.wait_for(IN_FLIGHT, OUTSTANDING)
        yield server


@pytest.mark.slow
def test_a_queued_request_is_reported_and_removed_when_its_client_disconnects(full_server: Server) -> None:
    before = full_server.figure("lmwire_worker_requests_total", outcome="cancelled")
    with RawClient(full_server.url) as client:
        client.chat("Hello")
        full_server.wait_for(WAITING, 1, model="mock")
    full_server.wait_for(WAITING, 0, model="mock")
    assert full_server.figure(IN_FLIGHT) == OUTSTANDING
    assert full_server.figure("lmwire_worker_requests_total", outcome="cancelled") == before, "it never got there"


@pytest.mark.slow
def test_counting_tokens_does_not_queue(full_server: Server) -> None:
    body = {"model": "mock", "messages": [{"role": "user", "content": "two words"}]}
    assert asked(full_server.url, "POST", "/v1/messages/count_tokens", body).json == {"input_tokens": 2}


@pytest.mark.slow
def test_the_time_in_the_queue_is_measured() -> None:
    with (
        served("mock", "--worker", HELD) as server,
        ExitStack() as clients,
        RawClient(server.url) as first,
        RawClient(server.url) as queued,
    ):
        first.chat("wait", stream=True)
        for _ in range(OUTSTANDING - 1):
            clients.enter_context(RawClient(server.url)).chat("wait", stream=True)
        server.wait_for("lmwire_queue_seconds_count", OUTSTANDING, model="mock")
        before = server.figure("lmwire_queue_seconds_sum", model="mock")
        queued.chat("Hello")
        server.wait_for(WAITING, 1, model="mock")
        first.close()
        server.wait_for("lmwire_queue_seconds_bucket", OUTSTANDING + 1, model="mock", le="+Inf")
        assert server.figure("lmwire_queue_seconds_sum", model="mock") > before


@pytest.mark.slow
def test_clients_that_do_not_read_their_answers_hold_up_nobody() -> None:
    """Rows are free when the worker is done, which has nothing to do with who reads what it made."""
    with served("mock", "--worker", MOCK, "--client-timeout", "1h") as server, ExitStack() as clients:
        for _ in range(OUTSTANDING // MANY + 1):
            client = clients.enter_context(RawClient(server.url))
            client.chat("long" * 1000, stream=True, n=MANY, max_tokens=200)  # more than sockets hold
            client.read_until(b"long")
        assert asked(server.url, "POST", CHAT, chat_body("Hello")).status == 200
