"""The look of an answer while it arrives, and afterwards."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from lmwire import ToolCall
from lmwire.cli.chat.markdown_display import MarkdownDisplay, split_blocks
from lmwire.cli.chat.plain_display import PlainDisplay, TerminalDisplay
from lmwire.cli.progress import format_progress
from lmwire.cli.terminal_text import NewlineTrimmer, format_call
from lmwire_protocol.events import Progress
from support.process.screen import open_screen

ANSWER = (
    "# Pipes\n\nA pipe has **two** ends:\n\n1. one\n\n2. two\n\n```python\nprint('\\n\\n# no heading')\n```\n\nDone.\n"
)


def test_a_pipe_gets_every_character_and_a_last_newline(capsys: pytest.CaptureFixture[str]) -> None:
    with PlainDisplay() as shown:
        for character in "\x1b[2J: as it is":
            shown.show(character)
    assert capsys.readouterr().out == "\x1b[2J: as it is\n"


def test_the_blank_lines_before_an_answer_are_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    for display in (PlainDisplay, TerminalDisplay):
        with display() as shown:
            for part in ("\n", "\r\n\n  So", "\n\nit is."):
                shown.show(part)
        assert capsys.readouterr().out == "  So\n\nit is.\n"


def test_no_newline_is_added_to_one(capsys: pytest.CaptureFixture[str]) -> None:
    with PlainDisplay() as shown:
        shown.show("a line\n")
    assert capsys.readouterr().out == "a line\n"


def test_a_model_cannot_write_control_sequences_to_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with TerminalDisplay() as shown:
        shown.show("\x1b]0;title\x07\x9b2Jtext\ttab\n")
        shown.show("\u202eturned\u2028\u2069 \u200f\u05e9 👩\u200d💻\n")
    assert capsys.readouterr().out == "]0;title2Jtext\ttab\nturned \u200f\u05e9 👩\u200d💻\n"


def test_markdown_makes_no_control_characters_of_entities() -> None:
    console = Console(file=io.StringIO(), width=60)
    with MarkdownDisplay(console) as shown:
        shown.show("a&#x202e;b&#27;[2Jc&#x2028;d\n\n")
    assert isinstance(console.file, io.StringIO)
    assert console.file.getvalue().strip() == "ab\N{REPLACEMENT CHARACTER}[2Jcd"


def test_a_pipe_gets_the_answer_without_the_reasoning_and_its_separator(capsys: pytest.CaptureFixture[str]) -> None:
    with PlainDisplay() as shown:
        shown.show_reasoning("\nHm.\n")
        for part in ("\n", "\n\nSo", "\n\nit is."):
            shown.show(part)
    assert capsys.readouterr().out == "So\n\nit is.\n"


def test_a_pipe_gets_each_tool_call_as_a_line_of_json(capsys: pytest.CaptureFixture[str]) -> None:
    with PlainDisplay() as shown:
        shown.show("Looking.")
        shown.show_call(ToolCall("c", "weather", {"city": "Köln"}))
    assert capsys.readouterr().out == 'Looking.\n{"name": "weather", "arguments": {"city": "Köln"}}\n'


def test_a_terminal_gets_reasoning_and_calls_dimmed(capsys: pytest.CaptureFixture[str]) -> None:
    with TerminalDisplay() as shown:
        for part in ("\n", "Hm.\n", "\x1b[0mSo.\n"):
            shown.show_reasoning(part)
        shown.show("\n\nLooking.")
        shown.show_call(ToolCall("c", "weather", {"city": "Köln"}))
    assert capsys.readouterr().out == (
        '\x1b[2mHm.\x1b[0m\x1b[2m\n[0mSo.\x1b[0m\n\nLooking.\n\x1b[2mweather({"city": "Köln"})\x1b[0m\n'
    )


@given(st.lists(st.text(alphabet="a\n ")))
def test_trimming_the_parts_is_trimming_the_whole(parts: list[str]) -> None:
    trimmed = NewlineTrimmer()
    assert "".join(trimmed.add(part) for part in parts) == "".join(parts).strip("\n")


def test_markdown_has_the_reasoning_before_it_and_the_calls_after_it() -> None:
    console = Console(file=io.StringIO(), width=60)
    with MarkdownDisplay(console) as shown:
        for part in ("\n", "Two\n\n*li", "nes*\n"):
            shown.show_reasoning(part)
        shown.show("\n\n*Looking*.")
        shown.show_call(ToolCall("c", "weather", {"city": "Oslo"}))
    assert isinstance(console.file, io.StringIO)
    lines = [line.strip() for line in console.file.getvalue().splitlines()]
    assert lines == ["Two", "", "*lines*", "", "Looking.", 'weather({"city": "Oslo"})']


def test_a_model_cannot_write_control_sequences_in_a_call() -> None:
    call = ToolCall("c", "\x1b[2J\nx", {"\x1b[2J": "\x9b2J"})
    assert format_call(call) == r'\x1b[2J\nx({"\u001b[2J": "\x9b2J"})'


@pytest.mark.parametrize("size", [1, 2, 7, len(ANSWER)])
def test_markdown_looks_the_same_however_it_was_cut(size: int) -> None:
    console = Console(file=io.StringIO(), width=60)
    with MarkdownDisplay(console) as shown:
        for start in range(0, len(ANSWER), size):
            shown.show(ANSWER[start : start + size])
    assert isinstance(console.file, io.StringIO)
    lines = [line.strip() for line in console.file.getvalue().splitlines()]
    assert lines == [
        "Pipes",
        "",
        "A pipe has two ends:",
        "",
        "1 one",
        "2 two",
        "",
        "print('\\n\\n# no heading')",
        "",
        "Done.",
    ]


def test_an_answer_is_cut_into_blocks_that_nothing_can_change_but_the_last() -> None:
    assert split_blocks("one\n\ntwo\n") == ["one\n\n", "two\n"]
    assert split_blocks("one\n\ntwo") == ["one\n\ntwo"], "half a line may become anything"
    assert split_blocks("- a\n\n- b\n\n") == ["- a\n\n- b\n\n"], "a list may go on after an empty line"
    assert split_blocks("```\na\n\nb\n") == ["```\na\n\nb\n"], "a code block ends with its fence"
    assert split_blocks("") == [""]


def test_the_progress_of_a_load_has_words_and_round_numbers() -> None:
    assert format_progress("download", 1_250_000_000, 2_500_000_000, "bytes") == "Downloading: 1,250 MB of 2,500 MB"
    assert format_progress("read", 3, 4, "steps") == "Reading the weights: 3 of 4 steps"
    assert format_progress("warm_up", 0, None, "steps") == "Warming up"
    assert format_progress("polish", 0, None, "steps") == "polish"
    assert format_progress("\x1b[2J", 1, 2, "\x07") == r"\x1b[2J: 1 of 2 \x07"


def test_a_long_prompt_has_a_bar_on_stderr_until_the_answer_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = open_screen(monkeypatch)
    with PlainDisplay() as shown:
        shown.show_progress(Progress(id="1", stage="prefill", current=100, total=300, unit="tokens"))
        assert screen.getvalue() == "", "a prompt that is computed at once has one event"
        shown.show_progress(Progress(id="1", stage="prefill", current=200, total=300, unit="tokens"))
        assert "Reading the prompt" in screen.getvalue()
        shown.show("yes")
        drawn = screen.getvalue()
        assert drawn.rstrip().endswith("\x1b[2K")
    assert screen.getvalue() == drawn
