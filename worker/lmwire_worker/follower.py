"""`python -P -m lmwire_worker --follow`: a rank that repeats what rank 0 does. Its stdin and stdout lead to rank 0."""

import os
import pickle
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import astuple

from lmwire_protocol import Load, RequestError

from .engine.interface import InsufficientMemory, LoadCancelled, PreparedPrompt
from .process import stdio
from .process.exits import exit_now
from .process.stderr_log import Log
from .ranks.channel import FrameReader, FrameWriter, Inbox, beat
from .ranks.group import FollowerRanks, Parted, checksum
from .ranks.hosts import Environment

if TYPE_CHECKING:
    from .engine.interface import RankRunner

EXIT_RANK_LOST: Final = 70


def main() -> None:
    """Follow rank 0 until its pipe ends, and do not return."""
    io, log = stdio.isolate_stdio(), Log()
    threading.Thread(target=stdio.log_stray_stdout, args=(io.stray_stdout, log), daemon=True).start()
    writer = FrameWriter(io.stdout)
    inbox = Inbox(FrameReader(io.stdin), lambda why: exit_now(EXIT_RANK_LOST))
    try:
        _follow(inbox, writer)
    except BaseException as error:
        # The other ranks wait for this one in a step, so it cannot go on after a failure that they may not have had.
        log(f"a rank failed: {type(error).__name__}: {error}")
        log.close(0.2)
        exit_now(EXIT_RANK_LOST)


def _follow(inbox: Inbox, writer: FrameWriter) -> None:
    _, start = inbox.take()
    os.environ.update(start["variables"])
    from .loading.model_loader import MlxModelLoader  # after the variables that MLX reads at its import

    ranks = FollowerRanks(start["rank"], start["size"], start["backend"], start["neighbours"], inbox, writer)
    templates = start["settings"]["template_dir"]
    loader = MlxModelLoader(
        start["settings"]["memory_limit"], template_dir=Path(templates) if templates else None, ranks=ranks
    )
    loader.prepare()
    ranks.answer("imported")
    environment = Environment(*ranks.expect("connect"))
    environment.apply()
    ranks.connect()
    environment.remove_files()
    ranks.answer("connected")
    from .models.device_memory import memory_usage

    beat(writer, lambda: (inbox.taken, inbox.waited_s, astuple(memory_usage())))
    _Repeater(ranks, loader, inbox).run()


class _Repeater:
    """Makes rank 0's calls."""

    def __init__(self, ranks: FollowerRanks, loader: Any, inbox: Inbox) -> None:
        self._ranks = ranks
        ranks.on_prepare = self._prepare
        self._loader = loader
        self._inbox = inbox
        self._runner: RankRunner | None = None
        self._prepared: dict[int, tuple[Any, Any, threading.Event]] = {}
        self._checksum = 0
        self._loaded = 0
        """Number of the load that opened the runner."""

    def run(self) -> None:
        """Repeat calls for ever."""
        while True:
            kind, value = self._inbox.take()
            getattr(self, f"_{kind}")(value)

    # Loads.

    def _load(self, value: Any) -> None:
        self._ranks.load, request = value
        load = _decode(request)
        assert isinstance(load, Load)
        try:
            self._runner = self._loader.open(load, lambda *progress: None, self._release_runner)
            self._loaded, self._checksum = self._ranks.load, 0
        except LoadCancelled:
            pass
        except RequestError as error:
            self._ranks.answer("failed", {"code": error.code, "message": error.message, "field": error.field})

    def _abandon(self, value: None) -> None:
        """Drop the model of a load that rank 0 has given up; a failure before the release drops nothing."""
        if self._loaded == self._ranks.load:
            self._release_runner()

    def _release_runner(self) -> None:
        runner, self._runner = self._runner, None
        self._prepared.clear()
        if runner is not None:
            runner.close()
        self._loader.model_closed()

    def _close(self, value: None) -> None:
        self._release_runner()

    # Requests.

    def _prepare(self, value: Any) -> None:
        if self._runner is None:
            return  # the request ended with its model
        number, request, size, prompt = value
        ready = threading.Event()
        command = _decode(request)
        prepared = self._runner.prepare(command, ready.set, size, prompt=PreparedPrompt(*prompt))
        assert prepared is not None
        self._prepared[number] = command, prepared, ready

    def _forget(self, number: int) -> None:
        if found := self._prepared.pop(number, None):
            found[1].cancel()

    def _add(self, value: Any) -> None:
        key, request, seed, plain_text, number = value
        prepared = None
        if number:
            command, prepared, ready = self._prepared[number]
            ready.wait()
            prepared.result()  # a failure that rank 0 did not have ends this rank
        else:
            command = _decode(request)
        try:
            self._model.add(key, command, seed, plain_text=plain_text, prepared=prepared)
            self._prepared.pop(number, None)
        except InsufficientMemory:
            pass  # rank 0 tries it again, with the same preparation
        except RequestError:
            self._prepared.pop(number, None)

    def _step(self, value: int) -> None:
        if value != self._checksum:
            raise Parted(f"rank {self._ranks.rank} has computed other tokens than rank 0")
        self._checksum = checksum(self._model.step(), self._checksum)

    def _remove(self, key: int) -> None:
        self._checksum = checksum(self._model.remove(key), self._checksum)

    def _clear_cache(self, value: None) -> None:
        self._model.clear_cache()

    def _release_caches(self, value: None) -> None:
        self._model.release_caches()

    @property
    def _model(self) -> "RankRunner":
        if self._runner is None:
            raise Parted(f"rank {self._ranks.rank} has no model")
        return self._runner


def _decode(command: bytes) -> Any:
    return pickle.loads(command)  # of rank 0, which has started this process
