"""Progress of a request's prompts in a stream, as llama.cpp reports it for `return_progress`."""

from collections.abc import Callable
from functools import partial
from time import monotonic
from typing import Any

from msgspec import Struct

from lmwire_protocol import events

from ..http.sse import WaitingEvent
from .usage import UsageSoFar


class PromptProgress(Struct, kw_only=True):
    """Progress of the prompts, all of them together."""

    total: int
    """Number of tokens."""
    cache: int
    """Number of tokens that were cached."""
    processed: int
    """Number of tokens that are done, cached ones included."""
    time_ms: int
    """Time since the first prompt was begun, in milliseconds."""


class ProgressTracker:
    """The progress of one request's prompts. The waiting event reports it as soon as it changes.

    Args:
        is_wanted: Whether the request asks for it.
        encode: Returns the encoded waiting event for a progress, which is None if there is none to report.
        so_far: Gets the lengths of the prompts; None if the request does not ask for its usage while it runs.
    """

    def __init__(
        self,
        *,
        is_wanted: bool,
        encode: Callable[[PromptProgress | None], bytes],
        so_far: UsageSoFar | None,
    ) -> None:
        self._is_wanted = is_wanted
        self._so_far = so_far
        self._started_at = 0.0
        self._prompts: dict[int, PromptProgress] = {}
        self._has_changed = False
        self.waiting = WaitingEvent(lambda: encode(self._take_change()))

    def options(self, prompt: int = 0) -> dict[str, Any]:
        """Return the options of a generation with which its progress is tracked.

        Args:
            prompt: The number of the generation's prompt in the request.
        """
        return {"on_progress": partial(self._note, prompt)} if self._is_wanted or self._so_far else {}

    def _note(self, prompt: int, progress: events.Progress) -> None:
        if progress.stage != "prefill" or progress.total is None:
            return
        if self._so_far:
            self._so_far.note_prompt(prompt, progress.total)
        if self._is_wanted:
            self._report(prompt, progress.current, progress.total)

    def _report(self, prompt: int, current: int, total: int) -> None:
        now = monotonic()
        if not self._prompts:
            self._started_at = now
        if (known := self._prompts.get(prompt)) is None:
            known = self._prompts[prompt] = PromptProgress(total=total, cache=current, processed=0, time_ms=0)
        known.processed = current
        known.time_ms = round((now - self._started_at) * 1000)
        self._has_changed = True
        self.waiting.send_now()

    def _take_change(self) -> PromptProgress | None:
        """Return the progress if it has changed since the last call."""
        if not self._has_changed:
            return None
        self._has_changed = False
        prompts = self._prompts.values()
        return PromptProgress(
            total=sum(prompt.total for prompt in prompts),
            cache=sum(prompt.cache for prompt in prompts),
            processed=sum(prompt.processed for prompt in prompts),
            time_ms=max(prompt.time_ms for prompt in prompts),
        )
