"""The registry: whoever takes an id out writes its end, and nobody else does."""

import math
import random
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from lmwire_protocol import Command, Generate, Info, Quit, RequestError
from lmwire_protocol.events import FinishReason
from lmwire_worker.engine.interface import AdmittedRequest, Status, TokenDelta, ToolCallDelta
from lmwire_worker.engine.preparation import Prepared
from lmwire_worker.session.request_registry import RequestRegistry
from lmwire_worker.session.request_state import Request
from lmwire_worker.session.v1 import EVENT_WRITER
from support.process.worker_process import SECONDS
from support.runners.clock import Clock
from support.runners.registry_recorder import Recorder


def request(id: str, command: Command | None = None, clock: Callable[[], float] = lambda: 0.0) -> Request:
    return Request(id, command or Generate(prompt="x"), EVENT_WRITER, 10, clock)


def delta(text: str, token_ids: list[int], finish_reason: FinishReason | None = None, choice: int = 0) -> TokenDelta:
    return TokenDelta(0, text, token_ids, len(token_ids), finish_reason, choice=choice)


def test_a_request_is_found_by_a_cancel_as_soon_as_it_is_accepted(registry: RequestRegistry, outbox: Recorder) -> None:
    registry.accept(request("a"))
    registry.cancel("c", "a")
    assert outbox.terminals() == ["c", "a"]
    assert registry.take_new(block=False) is not None
    assert (registry.counts().active, registry.counts().queued) == (0, 0)


def test_a_cancel_of_one_request_looks_at_no_other(registry: RequestRegistry) -> None:
    """A thousand cancels would look at a million requests, while they hold the lock that the engine needs."""
    seen: list[str] = []

    class Watched(Request):
        def __getattribute__(self, name: str) -> Any:
            if name == "id":
                seen.append(object.__getattribute__(self, name))
            return object.__getattribute__(self, name)

    for id in "abc":
        registry.accept(Watched(id, Generate(prompt="x"), EVENT_WRITER, 10, registry.clock))
    seen.clear()
    registry.cancel("c1", "b")
    assert set(seen) == {"b"}


def test_a_request_says_where_it_is(registry: RequestRegistry) -> None:
    asked, preparation = request("a"), Prepared[None](ready=lambda: None)
    registry.accept(asked)
    seen = [asked.status]
    asked.preparation = preparation
    seen.append(asked.status)
    preparation.work(lambda media: None)
    seen.append(asked.status)
    registry.start(asked)
    asked.admitted = AdmittedRequest(prompt_tokens=7)
    seen.append(asked.status)
    asked.first_token_at = 0.0
    seen.append(asked.status)
    registry.end(asked, asked.done())
    assert [*seen, asked.status] == [
        *(Status.WAITING, Status.PREPARING, Status.WAITING),
        *(Status.PREFILLING, Status.DECODING, Status.ENDED),
    ]


def test_a_request_that_must_wait_for_memory_waits_again(registry: RequestRegistry) -> None:
    asked = request("a")
    registry.accept(asked)
    registry.start(asked)
    registry.requeue(asked)
    assert asked.status is Status.WAITING


def test_a_running_answer_is_ended_by_the_engine_after_the_cancels_done(
    registry: RequestRegistry, outbox: Recorder
) -> None:
    running = request("a")
    registry.accept(running)
    assert registry.start(running)
    running.admitted, running.first_token_at = AdmittedRequest(prompt_tokens=7), 0.0
    registry.cancel("c", "a")
    assert outbox.terminals() == ["c"]
    assert registry.take_cancelled() == [running]
    registry.end(running, running.cancellation())
    assert outbox.terminals() == ["c", "a"]


def test_a_cancelled_prompt_ends_at_once_and_the_engine_drops_it_when_its_step_ends(
    registry: RequestRegistry, outbox: Recorder
) -> None:
    running = request("a")
    registry.accept(running)
    assert registry.start(running)
    running.admitted = AdmittedRequest(prompt_tokens=7)
    registry.cancel("c", "a")
    assert outbox.terminals() == ["c", "a"]
    assert registry.take_cancelled() == [running]
    registry.deliver([(running, delta("late", [1]))])
    registry.end(running, running.cancellation())
    assert outbox.terminals() == ["c", "a"]
    assert outbox.lines[-1]["usage"] == {"prompt_tokens": 7, "completion_tokens": 0, "cached_tokens": 0}


def test_a_request_that_was_cancelled_while_queued_does_not_start(registry: RequestRegistry) -> None:
    queued = request("a")
    registry.accept(queued)
    registry.cancel("c", "a")
    assert not registry.start(queued)


def test_nothing_of_a_request_comes_after_its_end(registry: RequestRegistry, outbox: Recorder) -> None:
    ended = request("a")
    registry.accept(ended)
    registry.start(ended)
    registry.deliver([(ended, delta("before", [1]))])
    registry.end(ended, ended.done())
    registry.deliver([(ended, delta("after", [2]))])
    registry.send_progress(ended, b'{"event":"progress","id":"a"}\n')
    registry.end(ended, RequestError("internal", "again"))
    assert [line["event"] for line in outbox.lines] == ["token", "done"]
    assert outbox.lines[-1]["usage"]["completion_tokens"] == 1, "only what was sent is counted"


def test_an_id_is_free_again_after_its_terminal_and_the_old_request_stays_dead(
    registry: RequestRegistry, outbox: Recorder
) -> None:
    old, new = request("a"), request("a")
    registry.accept(old)
    registry.end(old, old.done())
    registry.accept(new)
    registry.deliver([(old, delta("old", [1]))])
    registry.end(old, old.done())
    assert outbox.terminals() == ["a"]
    assert (registry.counts().active, registry.counts().queued) == (0, 1)


def test_the_last_delta_and_the_terminal_come_together(registry: RequestRegistry, outbox: Recorder) -> None:
    ended = request("a")
    registry.accept(ended)
    registry.start(ended)
    registry.deliver([(ended, delta("end", [1], "stop"))])
    assert [line["event"] for line in outbox.lines] == ["token", "done"]


def test_a_request_ends_when_all_its_choices_have_ended(registry: RequestRegistry, outbox: Recorder) -> None:
    several = request("a", Generate(prompt="x", n=2))
    registry.accept(several)
    registry.start(several)
    registry.deliver([(several, delta("b", [1], "length", choice=1)), (several, delta("a", [1], choice=0))])
    assert outbox.terminals() == []
    registry.deliver([(several, delta("c", [2, 3], "stop", choice=0))])
    done = outbox.lines[-1]
    assert done["finish_reason"] == "stop"
    assert done["choices"] == [
        {"finish_reason": "stop", "completion_tokens": 3},
        {"finish_reason": "length", "completion_tokens": 1},
    ]


def test_a_cancel_leaves_the_ends_that_choices_had_already(registry: RequestRegistry, outbox: Recorder) -> None:
    several = request("a", Generate(prompt="x", n=2))
    registry.accept(several)
    registry.start(several)
    registry.deliver([(several, delta("b", [1], "length", choice=1))])
    registry.cancel("c", "a")
    registry.end(several, several.cancellation())
    assert [choice["finish_reason"] for choice in outbox.lines[-1]["choices"]] == ["cancelled", "length"]


def test_a_tool_call_is_shown_where_it_comes(registry: RequestRegistry, outbox: Recorder) -> None:
    calling = request("a")
    registry.accept(calling)
    registry.deliver(
        [(calling, delta("b", [1])), (calling, ToolCallDelta(0, 0, call_id="1", name="f", arguments="{}"))]
    )
    assert [line["event"] for line in outbox.lines] == ["token", "tool_call"]


def test_a_waiting_request_whose_time_is_over_ends_at_once(
    registry: RequestRegistry, outbox: Recorder, clock: Clock
) -> None:
    registry.accept(request("a", Generate(prompt="x", timeout_ms=1500), clock))
    clock.now += 1.25
    assert registry.cancel_expired() == clock.now + 0.25
    assert outbox.terminals() == []
    clock.now += 0.25
    assert registry.cancel_expired() == math.inf
    assert outbox.lines[-1]["finish_reason"] == "timeout"


def test_a_running_request_whose_time_is_over_is_ended_by_the_engine(
    registry: RequestRegistry, outbox: Recorder, clock: Clock
) -> None:
    running = request("a", Generate(prompt="x", timeout_ms=1500), clock)
    registry.accept(running)
    registry.start(running)
    clock.now += 2
    registry.cancel_expired()
    assert outbox.terminals() == []
    assert registry.take_cancelled() == [running]
    registry.end(running, running.cancellation())
    assert outbox.lines[-1]["finish_reason"] == "timeout"


def test_the_next_deadline_is_reported(registry: RequestRegistry, clock: Clock) -> None:
    registry.accept(request("b", Generate(prompt="x", timeout_ms=2000), clock))
    registry.accept(request("a", Generate(prompt="x", timeout_ms=1000), clock))
    assert registry.cancel_expired() == clock.now + 1


def test_the_times_of_a_request_are_those_of_its_clock(
    registry: RequestRegistry, outbox: Recorder, clock: Clock
) -> None:
    timed = request("a", clock=clock)
    registry.accept(timed)
    clock.now += 2
    registry.start(timed)
    clock.now += 1
    timed.first_token_at = clock.now
    clock.now += 4
    registry.deliver([(timed, delta("end", [1, 2, 3], "stop"))])
    timings = outbox.lines[-1]["timings"]
    assert (timings["queued_ms"], timings["prefill_ms"], timings["first_token_ms"]) == (2000, 1000, 3000)
    assert (timings["total_ms"], timings["decode_tps"]) == (7000, 0.5)


def test_a_queued_id_cannot_be_taken_twice(registry: RequestRegistry) -> None:
    registry.accept(request("a"))
    with pytest.raises(RequestError, match="in flight") as refusal:
        registry.accept(request("a"))
    assert refusal.value.code == "duplicate_id"


def test_quit_is_answered_last_and_draining_refuses_what_is_new(registry: RequestRegistry, outbox: Recorder) -> None:
    registry.accept(request("a"))
    registry.quit(request("q", Quit()), drain=False)
    with pytest.raises(RequestError, match="quitting"):
        registry.accept(request("b", Info()))
    assert registry.take_new(block=True) is not None, "what has come in is handed out, although it has ended"
    assert registry.take_new(block=True) is None
    registry.close()
    assert outbox.terminals() == ["a", "q"]


def test_six_thousand_races_of_every_kind_of_end_give_one_terminal_each(
    registry: RequestRegistry, outbox: Recorder
) -> None:
    """The engine, a canceller and a last resort race for every request, on threads of their own."""
    rounds, batch = 60, 100
    barrier = threading.Barrier(3, timeout=SECONDS)

    def engine() -> None:
        for _ in range(rounds):
            barrier.wait()
            for running in registry.take_new(block=False) or []:
                if registry.start(running):
                    registry.deliver([(running, delta("text", [1]))])
                    if random.random() < 0.5:
                        registry.end(running, running.done())
            for cancelled in registry.take_cancelled():
                registry.end(cancelled, cancelled.cancellation())
            barrier.wait()

    def canceller() -> None:
        for n in range(rounds):
            barrier.wait()
            for i in random.sample(range(batch), batch):
                registry.cancel(f"c{n}.{i}", f"{n}.{i}")
            barrier.wait()

    def main() -> None:
        for n in range(rounds):
            for i in range(batch):
                registry.accept(request(f"{n}.{i}"))
            barrier.wait()
            barrier.wait()
            registry.cancel_where(lambda _: True)
            for cancelled_choices in registry.take_cancelled():
                registry.end(cancelled_choices, cancelled_choices.cancellation())

    threads = [threading.Thread(target=work, daemon=True) for work in (engine, canceller)]
    for thread in threads:
        thread.start()
    main()
    for thread in threads:
        thread.join()
    registry.end_all(Request.cancellation)
    counts = Counter(outbox.terminals())
    assert len(counts) == 2 * rounds * batch
    assert set(counts.values()) == {1}
    ended: set[str] = set()
    for line in outbox.lines:
        assert line["id"] not in ended, "nothing after a terminal"
        if line["event"] != "token":
            ended.add(line["id"])
