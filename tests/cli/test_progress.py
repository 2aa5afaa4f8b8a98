"""Progress on stderr: plain lines in a pipe and on a dumb terminal, bars otherwise."""

import pytest

from lmwire.cli import progress
from lmwire.cli.progress import OneLine, PlainLines, make_progress_area, show_progress
from lmwire.cli.progress_bars import Bars
from support.process.screen import open_screen


def test_a_pipe_gets_a_line_at_each_tenth_of_a_download(capsys: pytest.CaptureFixture[str]) -> None:
    with show_progress() as shown:
        for percent in range(101):
            shown.show("download", percent * 10**6, 100 * 10**6, "bytes")
            shown.show("read", percent, 100, "steps")
        shown.show("download", 5, None, "bytes")
    expected = [f"lmwire: Downloading: {percent} MB of 100 MB" for percent in range(0, 101, 10)]
    assert capsys.readouterr().err.splitlines() == expected


def test_a_dumb_terminal_gets_plain_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = open_screen(monkeypatch)
    monkeypatch.setenv("TERM", "dumb")
    assert make_progress_area(screen) is None
    with show_progress() as shown:
        assert isinstance(shown, PlainLines)


def test_a_terminal_gets_bars_and_without_rich_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = open_screen(monkeypatch)
    assert isinstance(make_progress_area(screen), Bars)
    monkeypatch.setattr(progress, "find_spec", lambda _: None)
    with show_progress() as shown:
        shown.show("download", 1_000_000, 2_000_000, "bytes")
    assert screen.getvalue() == "\r\x1b[K\x1b[2mDownloading: 1 MB of 2 MB\x1b[0m\r\x1b[K"


def test_lines_appear_above_the_one_line_which_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = open_screen(monkeypatch)
    area = OneLine(screen)
    area.begin("owner/name").show("read", 1, 4, "steps")
    area.print_above("a log\n")
    line = "\x1b[2mowner/name: Reading the weights: 1 of 4 steps\x1b[0m"
    assert screen.getvalue() == f"\r\x1b[K{line}\r\x1b[Ka log\n{line}"
    area.close()
    assert screen.getvalue().endswith("\r\x1b[K")


def test_loads_at_once_have_a_bar_each_below_other_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = open_screen(monkeypatch)
    area = Bars(screen)
    area.print_above("before [red]\n")
    one, other = area.begin("one"), area.begin("other")
    one.show("download", 1_500_000, 3_000_000, "bytes")
    other.show("warm_up", 1, 4, "steps")
    area.print_above("between [bold]\n")
    after = screen.getvalue().partition("between [bold]\n")[2]
    assert screen.getvalue().startswith("before [red]\n")
    assert after.index("one: Downloading") < after.index("1.5/3.0 MB")
    assert after.index("other: Warming up") < after.index("1/4")
    one.close()
    area.print_above("later\n")
    assert "one: " not in screen.getvalue().partition("later\n")[2]
    other.close()
    drawn = screen.getvalue()
    area.print_above("after\n")
    assert screen.getvalue() == f"{drawn}after\n"


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
