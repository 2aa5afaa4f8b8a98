"""Threads that prepare requests: each kind has its own, and scarce ones are limited to those that still wait."""

import gc
import threading
from collections.abc import Iterator
from queue import SimpleQueue
from typing import Any

import pytest

from lmwire_protocol import RequestError
from lmwire_worker.engine.preparation import MAX_PREPARATIONS, PreparationThreads, Prepared
from support.process.worker_process import SECONDS


@pytest.fixture
def preparer() -> Iterator[PreparationThreads]:
    preparer = PreparationThreads({"plain": 1, "hard": 2}, scarce=("hard",))
    yield preparer
    preparer.close()


@pytest.fixture
def without_collector() -> Iterator[None]:
    gc.disable()
    yield
    gc.enable()


def _fail(media: Any) -> None:
    raise RequestError("invalid_request", "is refused")


def prepare(preparer: PreparationThreads, kind: str, work: Any = lambda media: "made") -> Prepared[str]:
    there = threading.Event()
    prepared = preparer.start(kind, work, there.set)
    assert there.wait(SECONDS)
    return prepared


def test_plain_work_waits_for_no_hard_work(preparer: PreparationThreads) -> None:
    gate = threading.Event()
    ready: SimpleQueue[None] = SimpleQueue()
    hard = [preparer.start("hard", lambda media: gate.wait(SECONDS), lambda: ready.put(None)) for _ in range(9)]
    assert prepare(preparer, "plain").result() == "made"
    assert not any(prepared.done for prepared in hard)
    gate.set()
    for _ in hard:
        ready.get(timeout=SECONDS)


@pytest.mark.usefixtures("without_collector")
def test_refused_requests_free_their_places_in_the_preparation(preparer: PreparationThreads) -> None:
    refused: list[object] = []
    for _ in range(3 * MAX_PREPARATIONS):
        prepared: Any = prepare(preparer, "hard", _fail)
        try:
            prepared.result()
        except RequestError as error:
            refused.append(error)  # its traceback holds what was prepared
    assert len(refused) == 3 * MAX_PREPARATIONS


def test_the_number_of_preparations_is_bounded_and_a_dropped_one_frees_its_place(preparer: PreparationThreads) -> None:
    waiting = [prepare(preparer, "hard") for _ in range(MAX_PREPARATIONS)]
    there = threading.Event()
    next_one = preparer.start("hard", lambda media: "made", there.set)
    assert not there.is_set()
    waiting.pop()
    assert there.wait(SECONDS)
    assert next_one.result() == "made"


def test_a_preparation_dropped_before_its_turn_never_starts(preparer: PreparationThreads) -> None:
    gate, began = threading.Event(), threading.Event()
    first = preparer.start("plain", lambda media: gate.wait(SECONDS), lambda: None)
    dropped = preparer.start("plain", lambda media: began.set(), lambda: None)
    del dropped
    gate.set()
    prepare(preparer, "plain")
    assert first.done and not began.is_set()
