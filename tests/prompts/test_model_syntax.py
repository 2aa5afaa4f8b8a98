"""A model's template, then its settings and its vocabulary show how it writes its answers."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from lmwire_worker.models.tokenizer import Tokenizer
from lmwire_worker.models.tokenizer_loading import load_tokenizer
from lmwire_worker.prompts.model_syntax import find_syntax, find_tool_format
from random_model import write_model
from support.runners.answer_parts import parts_of

Open = Callable[..., Tokenizer]
MESSAGES = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"
REASONED = (
    "{% for m in messages %}{% if m.reasoning_content %}START{{ m.reasoning_content }}END{% endif %}"
    "{{ m.content }}{% endfor %}"
)


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Open:
    """The tokenizer of a model with a chat template and settings."""
    folder: Path = tmp_path_factory.mktemp("model")
    write_model(folder, "llama")
    config = folder / "tokenizer_config.json"
    plain = json.loads(config.read_text())

    def opened(template: object, **settings: object) -> Tokenizer:
        config.write_text(json.dumps(plain | {"chat_template": template} | settings))
        (folder / "chat_template.jinja").unlink(missing_ok=True)
        return load_tokenizer(folder, {}, trust_remote_code=False)

    return opened


@pytest.mark.parametrize(
    ("start", "end", "parts"),
    [
        ("<mm:think>", "</mm:think>", [("reasoning", "a"), ("content", "b")]),
        ("[reason]\n", "\n[/reason]", [("reasoning", "\na\n"), ("content", "b")]),
        ("<one>", "</other>", [("content", "<one>a</other>b")]),
        ("thoughts: ", ". ", [("content", "thoughts: a. b")]),
    ],
)
def test_tags_around_past_reasoning_are_those_of_new_reasoning(
    start: str, end: str, parts: list[tuple[str, str]], opened: Open
) -> None:
    tokenizer = opened(REASONED.replace("START", start).replace("END", end))
    assert parts_of([f"{start}a{end}b"], find_syntax(tokenizer, "llama")) == parts


def test_markers_of_reasoning_that_are_given_are_not_looked_for(opened: Open) -> None:
    syntax = find_syntax(opened(REASONED), "llama", ("<a>", "</a>"))
    assert parts_of(["<a>b</a>c"], syntax) == [("reasoning", "b"), ("content", "c")]


@pytest.mark.parametrize(
    "template",
    [
        [{"name": "rag", "template": MESSAGES}],
        "{{ raise_exception('no') }}",
        "{% for a in range(99999) %}{% for b in range(99999) %}x{% endfor %}{% endfor %}",
    ],
    ids=["none that could be chosen", "one that refuses", "one that never ends"],
)
def test_a_template_that_renders_no_call_leaves_it_to_the_settings(template: object, opened: Open) -> None:
    assert find_tool_format(opened(template, tool_parser_type="glm47"), "llama").name == "glm47"
    assert find_tool_format(opened(template), "llama").name == "json_tools"
    assert not find_syntax(opened(template), "llama").has_reasoning
