"""Progress on stderr: plain lines in a pipe and on a dumb terminal, bars otherwise."""

import io
import sys

import pytest

from lmwire.cli import progress
from lmwire.cli.progress import Bars, OneLine, PlainLines, StageProgress, show_progress


class _Screen(io.StringIO):
    """A terminal that remembers what was written to it."""

    def isatty(self) -> bool:
        return True


def open_screen(monkeypatch: pytest.MonkeyPatch) -> _Screen:
    """Make stderr a terminal. A fixture could not: pytest sets stderr again between a fixture and its test."""
    screen = _Screen()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "100")
    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)
    return screen


def chosen() -> StageProgress:
    with show_progress() as shown:
        return shown


def test_a_pipe_gets_a_line_at_each_tenth_of_a_download(capsys: pytest.CaptureFixture[str]) -> None:
    with show_progress() as shown:
        for percent in range(101):
            shown.show("download", percent * 10**6, 100 * 10**6, "bytes")
            shown.show("read", percent, 100, "steps")
        shown.show("download", 5, None, "bytes")
    expected = [f"lmwire: Downloading: {percent} MB of 100 MB" for percent in range(0, 101, 10)]
    assert capsys.readouterr().err.splitlines() == expected


def test_a_dumb_terminal_gets_plain_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    open_screen(monkeypatch)
    monkeypatch.setenv("TERM", "dumb")
    assert isinstance(chosen(), PlainLines)


def test_a_terminal_gets_bars_and_without_rich_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = open_screen(monkeypatch)
    assert isinstance(chosen(), Bars)
    monkeypatch.setattr(progress, "find_spec", lambda _: None)
    with show_progress() as shown:
        assert isinstance(shown, OneLine)
        shown.show("download", 1_000_000, 2_000_000, "bytes")
    assert screen.getvalue() == "\r\x1b[K\x1b[2mDownloading: 1 MB of 2 MB\x1b[0m\r\x1b[K"


def test_a_bar_has_the_stage_and_its_amounts_and_is_removed_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = open_screen(monkeypatch)
    with show_progress() as shown:
        shown.show("download", 1_500_000, 3_000_000, "bytes")
        shown.show("warm_up", 1, 4, "steps")
    drawn = screen.getvalue()
    assert "Downloading" in drawn and "1.5/3.0 MB" in drawn
    assert "Warming up" in drawn and "1/4" in drawn
    assert drawn.rstrip().endswith("\x1b[2K")


def test_no_color_leaves_bars_without_colors(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = open_screen(monkeypatch)

    def draw() -> str:
        screen.truncate(0)
        screen.seek(0)
        with show_progress() as shown:
            shown.show("download", 1_500_000, 3_000_000, "bytes")
        return screen.getvalue()

    assert "\x1b[38;5" in draw() or "\x1b[3" in draw()
    monkeypatch.setenv("NO_COLOR", "1")
    assert "38;5" not in draw()
