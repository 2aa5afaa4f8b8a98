"""The worker process: its parts, its threads and its exit."""

import faulthandler
import os
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, NoReturn

from lmwire_protocol import DEFAULT_MODEL, Line, LineSplitter, RequestError, decode_object, limits
from lmwire_protocol.events import RankGroup
from lmwire_protocol.imports import uncollected

from .engine.interface import ModelLoader
from .process import stdio
from .process.exits import exit_now
from .process.stderr_log import Log
from .process.stdio import Pipes
from .scheduling.scheduler import Scheduler
from .session.lifecycle import EXIT_HOST_GONE, LifecycleMonitor
from .session.output_queue import OutputQueue
from .session.request_registry import RequestRegistry
from .session.request_state import Request
from .session.v1 import Session

if TYPE_CHECKING:
    from .session.bridge import BridgeSession

EXIT_INTERNAL = 70
EXIT_PROTOCOL = 76

_READ_BYTES = 256 * 1024
_LOG_SECONDS = 0.2
_LAST_LINES_SECONDS = 2.0


class WorkerProcess:
    """One worker, from its first line to its exit.

    Args:
        io: The pipes to the host.
        log: The log for people.
        engine: Opens models.
        default_model: The model of a load that names none; None if a load must name one.
        ranks: The processes that hold each model together; None if this one does.
    """

    def __init__(
        self,
        io: Pipes,
        log: Log,
        engine: ModelLoader,
        default_model: str | None = None,
        ranks: RankGroup | None = None,
    ) -> None:
        self._default_model = default_model
        self._ranks = ranks
        self._io = io
        self._log = log
        self._loader = engine
        self._output = OutputQueue(io.write)
        self._registry = RequestRegistry(self._output)
        self._monitor = LifecycleMonitor(self._registry, io.stdout)
        self.scheduler = Scheduler(self._registry, self._output, engine, log)
        self._session: Session | BridgeSession | None = None

    def run(self) -> None:
        """Serve until the end, and do not return. The main thread, which calls it, becomes the engine's."""
        # A crash in native code then prints its stack. Walking the other threads' stacks can crash again.
        faulthandler.enable(2, all_threads=False)
        interactive = os.isatty(self._io.stdin)
        if interactive:
            self._log('type commands, one JSON object a line, such as {"id":"1","cmd":"hello"}; Ctrl-D ends')
        self._monitor.install_signal_handlers(interactive=interactive)
        self._spawn("stray-stdout", lambda: stdio.log_stray_stdout(self._io.stray_stdout, self._log))
        self._spawn("writer", lambda: self._output.run(self._registry.wake, self._monitor.host_gone))
        self._spawn("monitor", self._monitor.run)
        self._spawn("reader", self._read)
        exiter = self._spawn("exit", self._exit_when_drained)
        self._guard(self._serve)
        exiter.join()

    def _serve(self) -> None:
        self._registry.wait_for_first_line()
        self._output.flush(_LAST_LINES_SECONDS)  # the first reply is written before the imports occupy the interpreter
        self._registry.activity.become("loading")
        with uncollected():
            self._loader.prepare()
        self.scheduler.run()

    def _read(self) -> None:
        """Run the reader's thread. After the end of stdin, the requests in flight go on."""
        lines = LineSplitter(limits.LINE_IN_BYTES)
        while data := self._io.read(_READ_BYTES):
            for line in lines.feed(data):
                self._handle(line)
        for line in lines.finish():
            self._handle(line)
        self._registry.drain()

    def _handle(self, line: Line) -> None:
        try:
            self._serve_line(line)
        except BaseException as error:  # the line ends alone: the requests in flight go on
            if not isinstance(error, RequestError):
                self._log(_traceback())
                error = RequestError("internal", f"a bug in the worker: {type(error).__name__}: {error}")
            (self._session or self._version_1()).refuse(line, error)
        self._registry.mark_first_line()
        self._output.wait_for_reply_capacity()

    def _serve_line(self, line: Line) -> None:
        fields = decode_object(line)
        if self._session is None:
            self._session = self._version_1() if "id" in fields else self._bridge()
        if self._default_model and fields.get("cmd") == "load":
            fields.setdefault("path", self._default_model)
        self._session.serve(fields, len(line.data))

    def _version_1(self) -> Session:
        return Session(
            self._registry,
            self._output,
            self.scheduler,
            self._monitor,
            self._loader.names,
            [*self._loader.features, *([DEFAULT_MODEL] if self._default_model else [])],
            self._log,
            self._refuse_protocol,
            self._ranks,
        )

    def _bridge(self) -> "BridgeSession":
        from .session.bridge import BridgeSession  # few hosts need it, and it would slow every start

        return BridgeSession(self._registry, self._log)

    def _refuse_protocol(self) -> None:
        """End the worker after a hello without a common protocol version."""
        self._monitor.exit_code = EXIT_PROTOCOL
        self._registry.end_all(Request.cancellation)
        self._registry.close()

    def _exit_when_drained(self) -> None:
        """Wait until nothing is in flight, write the last lines, and end the process.

        It has a thread of its own, so that a quit does not wait for imports or an evaluation.
        """
        self._registry.wait_until_drained()
        self._loader.flush()
        code = self._monitor.exit_code  # read now: a host may close its end after the last line
        self._registry.close()
        if not self._output.flush():
            code = EXIT_HOST_GONE
        self._log.close(_LOG_SECONDS)
        exit_now(code)

    def _spawn(self, name: str, work: Callable[[], None]) -> threading.Thread:
        thread = threading.Thread(target=self._guard, args=(work,), name=name, daemon=True)
        thread.start()
        return thread

    def _guard(self, work: Callable[[], None]) -> None:
        """Run one of the process's threads. A bug in it ends all requests, and then the process.

        A worker that looks alive and answers nothing is worse than a dead one.
        """
        try:
            work()
        except BaseException as error:
            self._log(_traceback())
            self.end(f"a bug in the worker ended it: {type(error).__name__}: {error}", EXIT_INTERNAL)

    def end(self, problem: str, code: int) -> NoReturn:
        """End all requests with an error, flush the output, and end the process. Any thread may call it.

        Args:
            problem: The error of each request.
            code: The exit code.
        """
        self._log(problem)
        self._monitor.exit_code = code
        self._registry.end_all(lambda request: RequestError("internal", problem))
        self._registry.close()
        self._output.flush(_LAST_LINES_SECONDS)
        self._log.close(_LOG_SECONDS)
        exit_now(code)


def _traceback() -> str:
    import traceback  # nothing else needs it, and it would slow every start

    return traceback.format_exc()
