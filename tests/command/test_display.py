"""What an answer looks like while it comes, and after."""

import io

import pytest
from rich.console import Console

from lmwire.command.chat.display import Plain, Terminal
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
