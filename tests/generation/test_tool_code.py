"""Gemma's tool_code, written by a Gemma model with random weights in a real worker process."""

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


@pytest.mark.parametrize(
    ("written", "arguments"),
    [
        ('get_weather("Paris")', {"city": "Paris"}),
        ('get_weather("Paris", days=3)', {"city": "Paris", "days": 3}),
        ("get_weather(Paris)", {"city": "Paris"}),
        ("get_weather Paris", {"city": "Paris"}),
    ],
)
def test_a_positional_argument_is_that_of_the_signature(tmp_path: Path, written: str, arguments: Any) -> None:
    folder = write_model(tmp_path / "model", "gemma3_text")
    distinct = written.removeprefix("get_weather")[1 if "(" in written else 0].replace(" ", "Ġ")
    token = Tokenizer.from_file(str(folder / "tokenizer.json")).token_to_id(distinct)
    block: Any = {"type": "choice", "choices": [f"```tool_code\n{written}\n```"]}
    with lmwire.Worker() as worker:
        worker.load(str(folder))
        options: Any = {"tools": TOOLS, "format": block, "logit_bias": {token: 100}, "max_tokens": 60}
        (call,) = worker.chat([{"role": "user", "content": "?"}], **options).answer().tool_calls
    assert (call.name, call.arguments) == ("get_weather", arguments)
