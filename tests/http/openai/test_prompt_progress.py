"""The reports of `return_progress`. Their number depends on how fast they are sent."""

from collections.abc import Callable

import pytest

from lmwire_http.openai.response_fields import ProgressTracker, PromptProgress
from lmwire_protocol import events


def encode(progress: PromptProgress | None) -> bytes:
    return b"%d " % progress.processed if progress else b"none "


@pytest.fixture
def tracker() -> ProgressTracker:
    return ProgressTracker(is_wanted=True, encode=encode, so_far=None)


@pytest.fixture
def note(tracker: ProgressTracker) -> Callable[[int], None]:
    """Return what takes in the progress of a prompt of 100 tokens."""
    on_progress = tracker.options()["on_progress"]
    return lambda current: on_progress(
        events.Progress(id="", stage="prefill", current=current, total=100, unit="tokens")
    )


def test_the_first_report_is_sent_before_the_newest(tracker: ProgressTracker, note: Callable[[int], None]) -> None:
    for current in (20, 60, 80):
        note(current)
    assert tracker.waiting.encode() == b"20 80 "


def test_a_prompt_that_is_done_soon_has_the_first_and_the_last_report(
    tracker: ProgressTracker, note: Callable[[int], None]
) -> None:
    note(20)
    assert tracker.begin_answer() == b"20 100 "


def test_each_report_is_sent_once(tracker: ProgressTracker, note: Callable[[int], None]) -> None:
    note(20)
    assert [tracker.waiting.encode() for _ in range(2)] == [b"20 ", b"none "]
    note(60)
    assert [tracker.begin_answer() for _ in range(2)] == [b"100 ", b""]
