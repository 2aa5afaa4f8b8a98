"""The log of a worker at its end."""

from threading import Thread

from lmwire_worker.process.stderr_log import Log


def test_a_pause_of_the_worker_takes_only_a_step_of_the_time_for_the_last_lines() -> None:
    """A process that stands still wakes with all waits at their end, while its threads have got nothing done."""

    class SlowThread(Thread):
        waits: list[float]

        def join(self, timeout: float | None = None) -> None:
            self.waits.append(timeout or 0)

        def is_alive(self) -> bool:
            return len(self.waits) < 3

    log = Log()
    log.thread = thread = SlowThread()
    thread.waits = []
    log.close(1)
    assert len(thread.waits) == 3
    assert sum(thread.waits) < 1
