"""The watchdog of a worker: it ends a worker that makes no progress while requests wait for it.

The watchdog checks the worker at intervals, and counts the consecutive checks without progress. It does not subtract
times: after a machine slept for an hour, or a host was stopped, only one check was missed.
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

CHECKS: Final = 8
"""Consecutive checks without progress that mean a hang, so the limit is accurate to one eighth."""
_STATES_WITHOUT_STEPS: Final = frozenset({"idle", "paused", "draining"})
"""States in which no step is due: without requests, while the host does not read, and before an awaited end."""
_log = logging.getLogger("lmwire")


class HangDetector:
    """Decides from the checks whether a worker hangs.

    Args:
        step_limit: Time without progress after which a worker counts as hung, in seconds.
    """

    def __init__(self, step_limit: float) -> None:
        self._step_limit = step_limit
        self.interval_s = step_limit / CHECKS
        """Seconds between two checks, and the longest wait for the reply to a `ping`."""
        self._checks_without_progress = 0

    def check(self, ping: PingDone | None, since_s: float) -> WorkerHung | None:
        """Take the result of a check, and return an error if the worker counts as hung.

        Args:
            ping: The worker's reply, or None without one.
            since_s: Time since the start of the previous check, in seconds. A step within it is progress.
        """
        self._checks_without_progress = 0 if ping and _progresses(ping, since_s) else self._checks_without_progress + 1
        return WorkerHung(self._step_limit, ping is not None) if self._checks_without_progress >= CHECKS else None

    def reset(self) -> None:
        """Count from zero again, because no request waits for the worker."""
        self._checks_without_progress = 0


def _progresses(ping: PingDone, since_s: float) -> bool:
    return ping.state in _STATES_WITHOUT_STEPS or ping.step_age_ms is None or ping.step_age_ms < since_s * 1000


async def run_watchdog(worker: AsyncWorker, step_limit: float) -> None:
    """Check a worker until it is gone, and end it when it hangs.

    Args:
        worker: A worker that has been started.
        step_limit: Time without progress after which it counts as hung, in seconds.
    """
    detector = HangDetector(step_limit)
    last_check = monotonic()
    while worker.lost is None:
        started = monotonic()
        if not worker.busy:
            detector.reset()
        elif hung := detector.check(await _ping(worker, detector.interval_s), monotonic() - last_check):
            _log.warning("worker %d: %s", worker.pid, hung)
            await worker.abort(hung)
            return
        last_check = started
        await asyncio.sleep(started + detector.interval_s - monotonic())


async def _ping(worker: AsyncWorker, timeout: float) -> PingDone | None:
    try:
        return await worker.ping(timeout=timeout)
    except LmwireError:
        return None


class WatchdogThread:
    """`run_watchdog` on a thread.

    Args:
        worker: A worker that has been started.
        step_limit: Time without progress after which it counts as hung, in seconds.
    """

    def __init__(self, worker: Worker, step_limit: float) -> None:
        self._worker, self._detector = worker, HangDetector(step_limit)
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"lmwire-watchdog-{worker.pid}", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop the checks, without waiting."""
        self._stopped.set()

    def join(self) -> None:
        """Wait for the end of the thread, after `stop` and the end of the worker."""
        self._thread.join()

    def _run(self) -> None:
        pause_s = 0.0
        last_check = monotonic()
        while not self._stopped.wait(pause_s) and self._worker.lost is None:
            started = monotonic()
            if not self._worker.busy:
                self._detector.reset()
            elif hung := self._detector.check(self._ping(), monotonic() - last_check):
                _log.warning("worker %d: %s", self._worker.pid, hung)
                self._worker.abort(hung)
                return
            last_check = started
            pause_s = max(0.0, started + self._detector.interval_s - monotonic())

    def _ping(self) -> PingDone | None:
        try:
            return self._worker.ping(timeout=self._detector.interval_s)
        except LmwireError:
            return None
