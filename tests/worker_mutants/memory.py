"""Workers with faults in caching, loading or admission."""

from collections.abc import Callable
from typing import Any

import msgspec

from lmwire_protocol import Line, Load, RequestError, limits
from lmwire_protocol.events import Error, PingDone
from lmwire_worker.mock.runner import MockRunner, PromptCache
from lmwire_worker.prompts import truncation
from lmwire_worker.scheduling.scheduler import Scheduler
from lmwire_worker.session import request_registry
from lmwire_worker.session.request_registry import RequestRegistry
from lmwire_worker.worker import WorkerProcess
from support.protocol.mutation import mutant, replace, wrap


@mutant("A-1", "a-1-same-answer")
def answers_a_repeated_prompt_differently() -> None:
    seen: set[Any] = set()

    def add_or_confuse(add: Any, self: MockRunner, key: int, request: Any, *arguments: Any, **options: Any) -> Any:
        if request.prompt in seen and request.cache != "off":
            request = msgspec.structs.replace(request, prompt=f"again {request.prompt}")
        seen.add(request.prompt)
        return add(self, key, request, *arguments, **options)

    wrap(MockRunner, "add", add_or_confuse)


@mutant("A-3", "a-1-same-answer")
def remembers_although_it_must_not() -> None:
    def begin_on(begin: Any, self: PromptCache, request: Any, prompt: Any) -> Any:
        return begin(self, msgspec.structs.replace(request, cache="on"), prompt)

    wrap(PromptCache, "begin", begin_on)


@mutant("A-4", "cache")
def remembers_what_was_cleared() -> None:
    replace(PromptCache, "clear", lambda self: 0)


@mutant("N-7", "n-7-truncate")
def cuts_a_token_more_than_it_must() -> None:
    def cut_one_more(truncate_prompt: Any, request: Any, tokens: Any, context_len: int) -> Any:
        return truncate_prompt(request, tokens, context_len - (len(tokens) > context_len))

    wrap(truncation, "truncate_prompt", cut_one_more)


@mutant("#load", "n-7-truncate")
def takes_no_notice_of_a_loads_context() -> None:
    def build_whole(build: Any, self: MockRunner, load: Load, *arguments: Any) -> None:
        build(self, msgspec.structs.replace(load, context_len=None), *arguments)

    wrap(MockRunner, "__init__", build_whole)


@mutant("B-4", "b-4-failed-load")
def does_not_say_what_is_loaded() -> None:
    replace(request_registry, "Load", type("Other", (Load,), {}))


@mutant("B-2", "b-4-failed-load")
def drops_the_model_before_it_looks_for_the_next() -> None:
    def drop_and_load(begin: Any, self: Scheduler, request: Any, load: Load) -> Any:
        self._release_runner()
        return begin(self, request, load)

    wrap(Scheduler, "_load", drop_and_load)


@mutant("W-6", "w-6-busy")
def takes_any_number_of_requests() -> None:
    replace(limits, "REQUESTS", 10**9)


@mutant("W-1", "w-1-unread")
def reads_only_while_the_host_reads() -> None:
    replace(limits, "REPLY_BYTES", 1)


@mutant("L-1", "l-1-out-of-band")
def answers_pings_in_their_turn() -> None:
    def wait_and_handle(handle: Any, self: WorkerProcess, line: Line) -> None:
        if b'"ping"' in line.data:
            with self._registry._lock:
                self._registry._changed.wait_for(lambda: not self._registry._live)
        handle(self, line)

    def end_and_tell(end: Any, self: RequestRegistry, request: Any, outcome: Any) -> None:
        end(self, request, outcome)
        self._changed.notify_all()

    wrap(WorkerProcess, "_handle", wait_and_handle)
    wrap(RequestRegistry, "_end", end_and_tell)


@mutant("L-4", "l-4-idle-again")
def reports_running_when_all_is_answered() -> None:
    _change_pongs(lambda pong: pong.state == "idle", state="running", step_age_ms=5.0)


@mutant("L-4", "l-4-idle-again")
def reports_idle_while_it_works() -> None:
    _change_pongs(lambda pong: pong.active > 0, state="idle", step_age_ms=None)


@mutant("L-5", "l-4-idle-again")
def reports_draining_without_a_quit() -> None:
    _change_pongs(lambda pong: pong.active > 0, state="draining")


@mutant("L-6", "l-4-idle-again")
def ages_although_it_has_nothing_to_do() -> None:
    _change_pongs(lambda pong: pong.state == "idle", step_age_ms=5.0)


def _change_pongs(which: Callable[[PingDone], bool], **fields: Any) -> None:
    def pong_changed(pong: Any, self: RequestRegistry, id: str) -> PingDone:
        done = pong(self, id)
        return msgspec.structs.replace(done, **fields) if which(done) else done

    wrap(RequestRegistry, "ping_reply", pong_changed)


@mutant("B-4", "b-4-failed-load")
def does_not_say_what_of_a_load_is_at_fault() -> None:
    def error_without_field(made: Any, error: RequestError, **names: Any) -> Error:
        event = made(error, **names)
        event.field = None if error.code == "model_not_found" else event.field
        return event

    wrap(request_registry, "error_event", error_without_field)
