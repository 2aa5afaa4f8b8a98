"""The ranks of one model: how rank 0 starts and watches the others, and what all of them agree on.

All ranks compute the same steps, each with its part of the model, so they must make the same choices. Rank 0 sends each
call of its runner to the others, and with it every choice that depends on time, memory or arrival. The choices that
follow from tokens need no message: the ranks' logits are the same to the bit. A checksum of the tokens, sent with each
step, shows that they are.
"""

import faulthandler
import os
import queue
import shlex
import signal
import subprocess
import sys
import threading
import time
import zlib
from abc import ABC, abstractmethod
from array import array
from collections.abc import Callable, Iterable
from typing import Any, Final, Literal, TypeVar

from lmwire_protocol import RequestError

from ..engine.interface import LoadCancelled, MemoryUsage, ModelRunner, RankRunner, RunnerEvent, TokenDelta
from ..process.exits import exit_now, on_exit
from .channel import FrameReader, FrameWriter, Inbox, Lost, beat
from .hosts import Host, group_environment, rank_environment

T = TypeVar("T", bound=int)
Split = Literal["tensor", "pipeline"]
"""Way to split a model: each rank has a part of every layer, or a run of whole layers."""

CONNECT_S: Final = 20
"""Longest time in which MLX may connect the ranks, in seconds. It waits for ever otherwise, without Python's lock."""
START_S: Final = 120.0
"""Longest time until a follower has imported what it needs, in seconds."""
PARTED_S: Final = 3.0
"""Time in seconds that a follower waits for a call, while rank 0 is inside one, until they must have parted ways."""
LOSS_S: Final = 2.0
"""Time in which the end of another process is noticed, in seconds."""
POLL_S: Final = 0.1

ENDING_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Signals that rank 0 alone obeys: it ends the others in order."""
SSH: Final = ("ssh", "-T", "-o", "BatchMode=yes", "-o", "ServerAliveInterval=1", "-o", "ServerAliveCountMax=3")


class Parted(Exception):
    """Raised when this rank does something else than rank 0."""


class Ranks(ABC):
    """The place of this process among the ranks.

    Args:
        rank: Its number; 0 leads.
        size: Number of ranks.
        backend: MLX's backend.
        neighbours: Number of ranks on this machine, this one included.
    """

    def __init__(self, rank: int, size: int, backend: str, neighbours: int) -> None:
        self.rank = rank
        self.size = size
        self.backend = backend
        self.neighbours = neighbours
        self.split_kind: Split = "tensor"
        """Split of the last model."""
        self.layers = 0
        """Number of its layers, over all ranks."""
        self._group: Any = None

    def connect(self) -> None:
        """Connect MLX of all ranks. They all call it at about the same time."""
        import mlx.core as mx

        faulthandler.dump_traceback_later(CONNECT_S, exit=True)
        self._group = mx.distributed.init(strict=True, backend=self.backend)
        faulthandler.cancel_dump_traceback_later()
        if (self._group.rank(), self._group.size()) != (self.rank, self.size):
            raise RuntimeError(f"MLX sees rank {self._group.rank()} of {self._group.size()}")

    def split(self, network: Any, config: dict[str, Any]) -> None:
        """Leave of a network this rank's part. Its weights are not read yet.

        A part of each layer is best, since all ranks then compute at once. A model that cannot be split so is split
        into runs of whole layers, where mlx-lm can do that: the ranks then compute one after the other.

        Args:
            network: The network, which is changed.
            config: Its config.json.

        Raises:
            RequestError: unsupported.
        """
        self.layers = len(network.layers)
        layers: Any = getattr(network, "model", None)
        uneven = self._uneven_heads(config)
        if hasattr(network, "shard") and not uneven:
            self.split_kind, split = "tensor", network.shard
        elif hasattr(layers, "pipeline"):
            self.split_kind, split = "pipeline", layers.pipeline
        elif uneven and hasattr(network, "shard"):
            raise RequestError("unsupported", uneven)
        else:
            problem = f"mlx-lm cannot split the architecture `{config['model_type']}` over ranks"
            raise RequestError("unsupported", f"{problem}; load it without --ranks")
        try:
            split(self._group)
        except Exception as error:
            problem = f"mlx-lm cannot split this model over {self.size} ranks: {type(error).__name__}: {error}"
            raise RequestError("unsupported", problem) from None

    def _uneven_heads(self, config: dict[str, Any]) -> str | None:
        """Return why the ranks cannot share a model's heads evenly; None if they can."""
        text = config.get("text_config") or config
        for field in ("num_attention_heads", "num_key_value_heads"):
            if isinstance(count := text.get(field), int) and count % self.size:
                problem = f"the model has {count} of {field}, which {self.size} ranks cannot share evenly"
                return f"{problem}; use a number of ranks that divides {count}"
        return None

    @abstractmethod
    def release(self, row_cost: bytes, release_current_model: Callable[[], None]) -> None:
        """Release the present model, once every rank has checked the next one.

        Args:
            row_cost: Memory of a row, encoded. It must be the same for all ranks, since admission and the
                evictions from the cache follow from it.
            release_current_model: Releases it.

        Raises:
            RequestError: unsupported, if it is not the same.
        """

    @abstractmethod
    def agree(self, total: int, resident: int, weights: int) -> tuple[int, int, int]:
        """Return the memory that all ranks have, once all of them have read their weights.

        Args:
            total: This rank's memory, in bytes.
            resident: How much of it its weights and its process take.
            weights: Size of its weights, in bytes.

        Returns:
            The smallest total, and the largest resident size and size of the weights.
        """

    def serve(self, runner: RankRunner) -> ModelRunner:
        """Return the runner of all ranks, by this rank's own."""
        return runner

    @abstractmethod
    def decide(self, choose: Callable[[], T]) -> T:
        """Return what rank 0 chooses, by the clock or by its memory."""


class Follower:
    """A follower, as rank 0 sees it.

    Args:
        rank: Its number.
        host: Its place.
        command: The command that starts it there.
        on_lost: Called from a thread with the reason, once it is gone.
        on_beat: Called from a thread for each sign of life, with the follower.
    """

    def __init__(
        self,
        rank: int,
        host: Host,
        command: list[str],
        on_lost: Callable[["Follower", str], None],
        on_beat: Callable[["Follower"], None],
    ) -> None:
        self.rank = rank
        self.host = host
        remote = [*SSH, host.ssh, shlex.join(command)] if host.ssh else command
        # A signal to the worker's group would end a process that has no handler, such as ssh or a Python that starts.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, ENDING_SIGNALS)
        try:
            self._process = subprocess.Popen(remote, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        assert self._process.stdin and self._process.stdout
        self.writer = FrameWriter(self._process.stdin.fileno())
        self.taken, self.waited_s = 0, 0.0
        """The calls that it has taken, and the seconds that it has waited for the next, by its last sign of life."""
        self.memory = MemoryUsage()
        """Its memory, by its last sign of life."""

        def note(value: Any) -> None:
            self.taken, self.waited_s, memory = value
            self.memory = MemoryUsage(*memory)
            on_beat(self)

        self.inbox = Inbox(FrameReader(self._process.stdout.fileno()), lambda why: on_lost(self, why), note)

    def kill(self) -> None:
        """End its process at once."""
        self._process.kill()

    def __str__(self) -> str:
        return f"rank {self.rank}" + (f" on {self.host.ssh}" if self.host.ssh else "")


class LeaderRanks(Ranks):
    """Rank 0, which starts the others and leads them.

    Args:
        hosts: The place of each rank.
        backend: MLX's backend.
        settings: What followers need to know of this worker's command line.
    """

    def __init__(self, hosts: list[Host], backend: str, settings: dict[str, Any]) -> None:
        super().__init__(0, len(hosts), backend, sum(host.ssh is None for host in hosts))
        self._hosts = hosts
        self._settings = settings
        self._followers: list[Follower] = []
        self._loads = 0
        self._end_lock = threading.Lock()
        self._write_lock = threading.Lock()
        self._in_call_since: float | None = None
        self._last_write = 0.0
        self._check: Callable[[], None] = lambda: None
        self.calls = 0
        """Number of frames sent to each follower."""
        self.weights_bytes: list[int] = []
        """Size of each rank's weights."""
        self.fail: Callable[[str], None] = lambda problem: exit_now(70)
        """Called once, from a thread, when the ranks cannot go on. It must end this process."""
        self._ended = threading.Event()
        on_exit(self._kill)

    def start(self) -> None:
        """Start the followers. They import what they need while this process does the same."""
        command = [sys.executable, "-P", "-m", "lmwire_worker", "--follow"]
        for rank, host in enumerate(self._hosts[1:], 1):
            try:
                follower = Follower(rank, host, command, self._lost, self._check_progress)
            except OSError as error:
                self.fail(f"rank {rank} cannot be started: {error}")
                raise
            self._followers.append(follower)
            neighbours = sum(other.ssh == host.ssh for other in self._hosts)
            follower.writer.write(
                "start",
                {
                    "rank": rank,
                    "size": self.size,
                    "backend": self.backend,
                    "neighbours": neighbours,
                    "variables": rank_environment(self._hosts, self.backend, rank),
                    "settings": self._settings,
                },
            )
        os.environ.update(rank_environment(self._hosts, self.backend, 0))

    def connect(self) -> None:
        """Connect the ranks, once the followers have imported what they need."""
        self.collect("imported", lambda: None, START_S)
        environment = group_environment(self._hosts, self.backend)  # not before: others might take its ports meanwhile
        environment.apply()
        self.write("connect", (environment.variables, environment.files))
        super().connect()
        self.collect("connected", lambda: None, CONNECT_S)
        environment.remove_files()
        for follower in self._followers:
            beat(follower.writer)  # not before: MLX holds Python's lock while it connects, so no thread could

    def write(self, kind: str, value: Any = None) -> None:
        """Send a frame to all followers. Safe in any thread."""
        with self._write_lock:
            self.calls += 1
            self._last_write = time.monotonic()
            for follower in self._followers:
                try:
                    follower.writer.write(kind, value)
                except Lost as lost:
                    self._lost(follower, str(lost))

    def collect(self, stage: str, check: Callable[[], None], timeout_s: float | None = None) -> list[Any]:
        """Wait until each follower has reached a stage, and return what each of them says.

        Args:
            stage: The name of the stage.
            check: Called now and then; it raises to give up.
            timeout_s: Longest wait in seconds; None for no limit.

        Raises:
            RequestError: A follower has failed.
        """
        until = None if timeout_s is None else time.monotonic() + timeout_s
        values: list[Any] = []
        for follower in self._followers:
            while True:
                check()
                try:
                    kind, (load, value) = follower.inbox.take(POLL_S)
                except queue.Empty:
                    if until is not None and time.monotonic() > until:
                        self._lost(follower, f"it is not {stage} after {timeout_s:g} s")
                    continue
                if load != self._loads:
                    continue  # an answer to a load that was given up
                if kind == "failed":
                    raise RequestError(value["code"], f"{follower}: {value['message']}", field=value["field"])
                if kind == stage:
                    values.append(value)
                    break
        return values

    # Loads.

    def begin_load(self, command: bytes, check: Callable[[], None]) -> None:
        """Let the followers begin a load.

        Args:
            command: The command, as followers read it.
            check: Called while this rank waits for them; it raises to give up.
        """
        self._loads += 1
        self._check = check
        self.write("load", (self._loads, command))

    def abandon_load(self) -> None:
        """Let the followers drop what they have of the load."""
        self.write("abandon")

    def release(self, row_cost: bytes, release_current_model: Callable[[], None]) -> None:
        """See `Ranks.release`."""
        if any(cost != row_cost for cost in self.collect("checked", self._check)):
            problem = f"{self.size} ranks cannot share the model's layers evenly: their caches would differ in size"
            raise RequestError("unsupported", f"{problem}; use another number of ranks")
        self.write("release")
        release_current_model()

    def agree(self, total: int, resident: int, weights: int) -> tuple[int, int, int]:
        """See `Ranks.agree`."""
        totals, residents, sizes = zip((total, resident, weights), *self.collect("read", self._check), strict=True)
        self.weights_bytes = [*sizes]
        budget = min(totals), max(residents), max(sizes)
        self.write("budget", budget)
        return budget

    # Steps.

    def memory(self, own: MemoryUsage) -> MemoryUsage:
        """Return the memory of the rank that has used the most, by its last sign of life.

        Args:
            own: This rank's memory.
        """
        return max(own, *(follower.memory for follower in self._followers), key=lambda memory: memory.peak_bytes)

    def serve(self, runner: RankRunner) -> ModelRunner:
        """See `Ranks.serve`."""
        from .runner import RankedRunner

        return RankedRunner(runner, self)

    def decide(self, choose: Callable[[], T]) -> T:
        """See `Ranks.decide`."""
        value = choose()
        self.write("decided", value)
        return value

    def begin_call(self, kind: str, value: Any) -> None:
        """Send a call that all ranks compute together."""
        self.write(kind, value)
        self._in_call_since = time.monotonic()

    def end_call(self) -> None:
        """Note that this rank has computed the call."""
        self._in_call_since = None

    # The end.

    def _check_progress(self, follower: Follower) -> None:
        """Notice that this rank and a follower wait for each other for ever. Called from the follower's thread."""
        since = self._in_call_since
        if since is None or follower.taken != self.calls or follower.waited_s < PARTED_S:
            return
        if time.monotonic() - max(since, self._last_write) > PARTED_S:
            self._lost(follower, "it does something else than rank 0, which waits for it")

    def _lost(self, follower: Follower, why: str) -> None:
        with self._end_lock:
            if self._ended.is_set():
                return
            self._ended.set()
        self.fail(f"{follower} is lost: {why}")

    def wait_for_loss(self) -> None:
        """Let a follower's loss be the reason of an exception: if one is lost, this process ends and nothing returns.

        MLX may raise for a lost rank before the thread that reads from it knows.
        """
        if self._ended.wait(LOSS_S):
            threading.Event().wait()

    def _kill(self) -> None:
        self._ended.set()
        for follower in self._followers:
            follower.kill()


class FollowerRanks(Ranks):
    """A follower's place.

    Args:
        rank: Its number.
        size: Number of ranks.
        backend: MLX's backend.
        neighbours: Number of ranks on this machine.
        inbox: The frames of rank 0.
        writer: The pipe to rank 0.
    """

    def __init__(self, rank: int, size: int, backend: str, neighbours: int, inbox: Inbox, writer: FrameWriter) -> None:
        super().__init__(rank, size, backend, neighbours)
        self._inbox = inbox
        self._writer = writer
        self.load = 0
        """Number of the present load."""
        self.on_prepare: Callable[[Any], None] = lambda value: None
        """Takes a prompt that rank 0 has prepared. Its threads send prompts in the midst of a call, too."""

    def answer(self, stage: str, value: Any = None) -> None:
        """Tell rank 0 that this rank has reached a stage."""
        self._writer.write(stage, (self.load, value))

    def expect(self, kind: str) -> Any:
        """Return the value of the next frame.

        Args:
            kind: What it must be.

        Raises:
            LoadCancelled: Rank 0 has given up the load.
            Parted: It is something else.
        """
        got, value = self._inbox.take()
        while got == "prepare":
            self.on_prepare(value)
            got, value = self._inbox.take()
        if got == "abandon":
            raise LoadCancelled
        if got != kind:
            raise Parted(f"rank {self.rank} expects `{kind}`, and rank 0 sends `{got}`")
        return value

    def release(self, row_cost: bytes, release_current_model: Callable[[], None]) -> None:
        """See `Ranks.release`."""
        self.answer("checked", row_cost)
        self.expect("release")
        release_current_model()

    def agree(self, total: int, resident: int, weights: int) -> tuple[int, int, int]:
        """See `Ranks.agree`."""
        self.answer("read", (total, resident, weights))
        total, resident, weights = self.expect("budget")
        return total, resident, weights

    def decide(self, choose: Callable[[], T]) -> T:
        """See `Ranks.decide`."""
        return self.expect("decided")


def checksum(events: Iterable[RunnerEvent], before: int) -> int:
    """Return a checksum of the tokens of all steps.

    Args:
        events: The events of the last step.
        before: The checksum of all steps before it.
    """
    for event in events:
        if isinstance(event, TokenDelta):
            before = zlib.crc32(array("q", [event.key, event.choice, *event.token_ids]), before)
    return before
