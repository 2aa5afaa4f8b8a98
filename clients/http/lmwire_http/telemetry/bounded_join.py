"""A bounded wait for a thread at the end of the server."""

from math import ceil
from threading import Thread
from typing import Final

_STEP_S: Final = 0.1


def join_within(thread: Thread, limit_s: float) -> None:
    """Wait until a thread has ended, or for a time.

    While the whole process stands still, such as on a busy machine or a suspended one, the thread gets nothing done.
    The wait is made of short steps, so that such a pause takes only one of them.

    Args:
        thread: The thread.
        limit_s: Longest wait, in seconds.
    """
    for _ in range(ceil(limit_s / _STEP_S)):
        thread.join(min(_STEP_S, limit_s))
        if not thread.is_alive():
            return
