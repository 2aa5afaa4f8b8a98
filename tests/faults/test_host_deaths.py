"""A host that goes, in every way and at every moment: its worker is gone in time, or finishes what it accepted."""

from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path

import pytest

from random_model import write_model
from support.models.misbehaving_models import SLEEPS, write_misbehaving_model
from support.nightly import nightly_but
from support.process.dying_host import WAYS, Host
from support.process.worker_process import SECONDS, WorkerProcess

pytestmark = pytest.mark.slow

QUIT = {"id": "quit", "cmd": "quit", "drain": True}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("models") / "qwen3", end_scale=0)


@pytest.fixture(scope="module")
def slow_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_misbehaving_model(tmp_path_factory.mktemp("models") / "slow", SLEEPS)


def bring_to(host: Host, state: str, path: str, words: int) -> None:
    """Bring a worker into a state. A paused host asks for `words` tokens."""
    load = {"id": "load", "cmd": "load", "path": path, "trust_remote_code": True}
    work = {"id": "work", "cmd": "generate", "prompt": [1, 2], "max_tokens": words}
    host.send(load)
    if state == "loading":
        host.read_until(b'"stage":"re')
    elif state == "warm-up":
        host.read_until(b'"stage":"warm_up"')
    elif state == "prefill":
        host.send({"id": "long", "cmd": "generate", "prompt": [9] * 600, "max_tokens": 1}, work)
        host.read_until(b'"stage":"prefill"')
    elif state in ("decoding", "draining"):
        host.send(work, {**work, "id": "more"}, *([QUIT] if state == "draining" else []))
        host.read_until(b'"token_ids"')
    elif state == "paused":
        host.send(*({**work, "id": f"work {i}"} for i in range(30)))
        host.read_until(b'"token_ids"')
        host.wait_for_pause()


STATES = ("idle", "loading", "prefill", "decoding", "draining", "paused")
SAMPLE = [
    (state, way) for state in STATES for way in WAYS if state == "decoding" or way in ("is killed", "closes stdin")
]
"""For each commit every way in one state, and in the others the two that differ most: a death, and an orderly end."""


@pytest.mark.parametrize("departure", nightly_but(SAMPLE, product(STATES, WAYS)), ids=", ".join)
def test_a_host_that_goes_while_its_worker_has_no_model(departure: tuple[str, str]) -> None:
    state, way = departure
    with Host(way, "--mock") as host:
        path = {"paused": "mock", "loading": "mock:step_ms=1,load_steps=200"}.get(state, "mock:step_ms=1")
        if state != "idle":
            finite = 3000 if state == "paused" else 100
            bring_to(host, state, path, words=finite if way == "closes stdin" else 1_000_000)
        host.go()


@pytest.mark.parametrize(
    "state", nightly_but({"loading", "decoding"}, ["importing", "loading", "warm-up", "prefill", "decoding"])
)
def test_a_host_that_goes_while_its_worker_has_a_real_model(state: str, model: Path, slow_model: Path) -> None:
    def go(way: str) -> None:
        with Host(way) as host:
            bring_to(host, state, str(slow_model if state == "warm-up" else model), words=300)
            host.go()

    ways = WAYS[:4] if state == "importing" else WAYS[2:4]  # what the engine does not matter for is above
    with ThreadPoolExecutor() as hosts:
        ends = {way: hosts.submit(go, way) for way in ways}
    for way, end in ends.items():
        assert end.exception() is None, f"a host that {way}: {end.exception()!r}"


def test_a_host_that_leaves_as_soon_as_it_has_the_last_line_sees_a_clean_end() -> None:
    for _ in range(10):
        with WorkerProcess("--mock", read=False) as worker:
            worker.send({"id": "q", "cmd": "quit"})
            worker.stdout.read(1)
            worker.stdout.close()
            assert worker.process.wait(SECONDS) == 0
