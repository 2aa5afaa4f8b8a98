"""What an answer looks like while it comes, and after."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from lmwire import ToolCall
from lmwire.command.chat.display import Plain, Terminal, Trimmed, called
from lmwire.command.chat.markdown import Markdown, blocks
from lmwire.command.chat.progress import progress_line

ANSWER = (
    "# Pipes\n\nA pipe has **two** ends:\n\n1. one\n\n2. two\n\n```python\nprint('\\n\\n# no heading')\n```\n\nDone.\n"
)


def test_a_pipe_gets_every_character_and_a_last_newline(capsys: pytest.CaptureFixture[str]) -> None:
    with Plain() as shown:
        for character in "\x1b[2J: as it is":
            shown.show(character)
    assert capsys.readouterr().out == "\x1b[2J: as it is\n"


def test_no_newline_is_added_to_one(capsys: pytest.CaptureFixture[str]) -> None:
    with Plain() as shown:
        shown.show("a line\n")
    assert capsys.readouterr().out == "a line\n"


def test_a_model_cannot_write_control_sequences_to_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with Terminal() as shown:
        shown.show("\x1b]0;title\x07\x9b2Jtext\ttab\n")
    assert capsys.readouterr().out == "]0;title2Jtext\ttab\n"


def test_a_pipe_gets_the_answer_without_the_thought_and_what_parted_them(capsys: pytest.CaptureFixture[str]) -> None:
    with Plain() as shown:
        shown.think("\nHm.\n")
        for piece in ("\n", "\n\nSo", "\n\nit is."):
            shown.show(piece)
    assert capsys.readouterr().out == "So\n\nit is.\n"


def test_a_pipe_gets_each_tool_call_as_a_line_of_json(capsys: pytest.CaptureFixture[str]) -> None:
    with Plain() as shown:
        shown.show("Looking.")
        shown.call(ToolCall("c", "weather", {"city": "Köln"}))
    assert capsys.readouterr().out == 'Looking.\n{"name": "weather", "arguments": {"city": "Köln"}}\n'


def test_a_terminal_gets_thought_and_calls_dimmed(capsys: pytest.CaptureFixture[str]) -> None:
    with Terminal() as shown:
        for piece in ("\n", "Hm.\n", "\x1b[0mSo.\n"):
            shown.think(piece)
        shown.show("\n\nLooking.")
        shown.call(ToolCall("c", "weather", {"city": "Köln"}))
    assert capsys.readouterr().out == (
        '\x1b[2mHm.\x1b[0m\x1b[2m\n[0mSo.\x1b[0m\n\nLooking.\n\x1b[2mweather({"city": "Köln"})\x1b[0m\n'
    )


@given(st.lists(st.text(alphabet="a\n ")))
def test_trimming_in_pieces_is_trimming_the_whole(pieces: list[str]) -> None:
    trimmed = Trimmed()
    assert "".join(trimmed.add(piece) for piece in pieces) == "".join(pieces).strip("\n")


def test_markdown_has_the_thought_before_it_and_the_calls_behind() -> None:
    console = Console(file=io.StringIO(), width=60)
    with Markdown(console) as shown:
        for piece in ("\n", "Two\n\n*li", "nes*\n"):
            shown.think(piece)
        shown.show("\n\n*Looking*.")
        shown.call(ToolCall("c", "weather", {"city": "Oslo"}))
    assert isinstance(console.file, io.StringIO)
    lines = [line.strip() for line in console.file.getvalue().splitlines()]
    assert lines == ["Two", "", "*lines*", "", "Looking.", 'weather({"city": "Oslo"})']


def test_a_model_cannot_write_control_sequences_in_a_call() -> None:
    assert called(ToolCall("c", "\x1b[2J", {"\x1b[2J": "\x9b2J"})) == r'[2J({"\u001b[2J": "2J"})'


@pytest.mark.parametrize("size", [1, 2, 7, len(ANSWER)])
def test_markdown_looks_the_same_however_it_was_cut(size: int) -> None:
    console = Console(file=io.StringIO(), width=60)
    with Markdown(console) as shown:
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
    assert blocks("one\n\ntwo\n") == ["one\n\n", "two\n"]
    assert blocks("one\n\ntwo") == ["one\n\ntwo"], "half a line may become anything"
    assert blocks("- a\n\n- b\n\n") == ["- a\n\n- b\n\n"], "a list may go on after an empty line"
    assert blocks("```\na\n\nb\n") == ["```\na\n\nb\n"], "a code block ends with its fence"
    assert blocks("") == [""]


def test_a_load_is_told_in_words_and_round_numbers() -> None:
    assert progress_line("download", 1_250_000_000, 2_500_000_000, "bytes") == "Downloading: 1,250 MB of 2,500 MB"
    assert progress_line("read", 3, 4, "steps") == "Reading the weights: 3 of 4 steps"
    assert progress_line("warm_up", 0, None, "steps") == "Warming up"
    assert progress_line("polish", 0, None, "steps") == "polish"
