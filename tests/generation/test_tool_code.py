"""Gemma's tool_code, written by a Gemma model with random weights in a real worker process."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer

import lmwire
from random_model import write_model

pytestmark = pytest.mark.slow

PARAMETERS: Any = {
    "type": "object",
    "properties": {"days": {"type": "integer"}, "city": {"type": "string"}},
    "required": ["city"],
}
TOOLS: Any = [{"type": "function", "function": {"name": "get_weather", "parameters": PARAMETERS}}]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("gemma") / "model", "gemma3_text")


@pytest.fixture(scope="module")
def worker(folder: Path) -> Iterator[lmwire.Worker]:
    with lmwire.Worker() as worker:
        worker.load(str(folder))
        yield worker


@pytest.mark.parametrize(
    ("written", "arguments"),
    [
        ('get_weather("Paris")', {"city": "Paris"}),
        ('get_weather("Paris", days=3)', {"city": "Paris", "days": 3}),
        ("get_weather(Paris)", {"city": "Paris"}),
        ("get_weather Paris", {"city": "Paris"}),
    ],
)
def test_a_positional_argument_is_that_of_the_signature(
    folder: Path, worker: lmwire.Worker, written: str, arguments: Any
) -> None:
    text = f"```tool_code\n{written}\n```"
    biases = towards(text, Tokenizer.from_file(str(folder / "tokenizer.json")))
    block: Any = {"type": "choice", "choices": [text]}
    options: Any = {"tools": TOOLS, "format": block, "logit_bias": biases, "max_tokens": 60}
    (call,) = worker.chat([{"role": "user", "content": "?"}], **options).answer().tool_calls
    assert (call.name, call.arguments) == ("get_weather", arguments)


def towards(text: str, tokenizer: Tokenizer) -> dict[int, float]:
    """Return biases with which a model writes a text instead of a call of its own, where both are allowed.

    White space comes last of the text's tokens, since calls may have more of it. The string is what calls do not have.
    """
    ids: dict[str, int] = tokenizer.get_vocab()
    wanted = tokenizer.encode(text, add_special_tokens=False).tokens
    biases = {token: -100.0 for token in ids if token not in wanted}
    biases |= {token: -50.0 for token in wanted if token in ("Ċ", "Ġ")} | {'"': 100.0}
    return {ids[token]: bias for token, bias in biases.items()}
