"""The random models are models: they load, write text, and end."""

import string
from pathlib import Path

import pytest

from random_model import FAMILIES, write_model
from support.runners.generation_runners import ask, chat, open_runner

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("family", FAMILIES)
def test_greedy_text_is_printable(family: str, tmp_path: Path) -> None:
    answers = ask(
        open_runner(write_model(tmp_path / "model", family)), *(chat(f"hi {n}", max_tokens=20) for n in range(4))
    )
    text = "".join(answer.text for answer in answers)
    assert len(set(text)) > 5 and set(text) <= set(string.ascii_lowercase + " .,")


def test_the_same_model_is_not_written_twice_and_another_one_is(tmp_path: Path) -> None:
    weights = write_model(tmp_path, hidden_size=32) / "model.safetensors"
    first = weights.stat().st_mtime_ns
    write_model(tmp_path, hidden_size=32)
    assert weights.stat().st_mtime_ns == first
    write_model(tmp_path, hidden_size=64)
    assert weights.stat().st_mtime_ns != first


def test_the_smallest_vocabulary_holds_every_byte(tmp_path: Path) -> None:
    runner = open_runner(write_model(tmp_path, vocab_size=272))
    assert runner.model.vocab_size == 272
    (answer,) = ask(runner, chat("Größe 日本 \N{PARTY POPPER} \0", max_tokens=3))
    assert answer.error is None
