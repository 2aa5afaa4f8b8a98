"""The watch over a worker: one that makes no progress while requests wait for it is ended.

A watch looks at the worker from time to time, and counts the looks in a row that show no progress. It does not subtract
times of day: a machine that slept for an hour, or a host that was stopped, has missed one look.
"""

import asyncio
import logging
import threading
from time import monotonic
from typing import Final

from lmwire_protocol.events import PingDone

from .asyncio_worker import AsyncWorker
from .errors import LmwireError, WorkerHung
from .worker import Worker

LOOKS: Final = 8
"""Looks without progress that make up the limit: it is kept to an eighth."""
_EXCUSED: Final = frozenset({"idle", "paused", "draining"})
"""States in which no step is due: nothing to do, a host that does not read, an end that somebody waits for."""
_log = logging.getLogger("lmwire")


class Watch:
    """Judges what each look shows.

    Args:
        step_limit: Seconds without progress after which a worker counts as hung.
    """

    def __init__(self, step_limit: float) -> None:
        self._step_limit = step_limit
        self.pause = step_limit / LOOKS
        """Seconds from one look to the next, and for the answer to a `ping`."""
        self._fruitless = 0

    def judge(self, ping: PingDone | None, since_s: float) -> WorkerHung | None:
        """Return why the worker counts as hung; None while it does not.

        Args:
            ping: The worker's answer, if it answered.
            since_s: Seconds since the look before began: a sign of life within them is progress.
        """
        self._fruitless = 0 if ping and _progresses(ping, since_s) else self._fruitless + 1
        return WorkerHung(self._step_limit, ping is not None) if self._fruitless >= LOOKS else None

    def rest(self) -> None:
        """Take note that no request waits for the worker."""
        self._fruitless = 0


def _progresses(ping: PingDone, since_s: float) -> bool:
    return ping.state in _EXCUSED or ping.step_age_ms is None or ping.step_age_ms < since_s * 1000


async def watch(worker: AsyncWorker, step_limit: float) -> None:
    """Watch a worker until it is gone, and end it when it hangs.

    Args:
        worker: A worker that has been started.
        step_limit: Seconds without progress after which it counts as hung.
    """
    watch = Watch(step_limit)
    looked = monotonic()
    while worker.lost is None:
        began = monotonic()
        if not worker.works:
            watch.rest()
        elif hung := watch.judge(await _ping(worker, watch.pause), monotonic() - looked):
            _log.warning("worker %d: %s", worker.pid, hung)
            await worker.give_up(hung)
            return
        looked = began
        await asyncio.sleep(began + watch.pause - monotonic())


async def _ping(worker: AsyncWorker, timeout: float) -> PingDone | None:
    try:
        return await worker.ping(timeout=timeout)
    except LmwireError:
        return None


class WatchThread:
    """Does what `watch` does, in a thread of its own."""

    def __init__(self, worker: Worker, step_limit: float) -> None:
        self._worker, self._watch = worker, Watch(step_limit)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"lmwire-watch-{worker.pid}", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Look no more."""
        self._over.set()

    def join(self) -> None:
        """Wait for the thread's end, after `stop` and the end of the worker."""
        self._thread.join()

    def _run(self) -> None:
        pause = 0.0
        looked = monotonic()
        while not self._over.wait(pause) and self._worker.lost is None:
            began = monotonic()
            if not self._worker.works:
                self._watch.rest()
            elif hung := self._watch.judge(self._ping(), monotonic() - looked):
                _log.warning("worker %d: %s", self._worker.pid, hung)
                self._worker.give_up(hung)
                return
            looked = began
            pause = max(0.0, began + self._watch.pause - monotonic())

    def _ping(self) -> PingDone | None:
        try:
            return self._worker.ping(timeout=self._watch.pause)
        except LmwireError:
            return None
