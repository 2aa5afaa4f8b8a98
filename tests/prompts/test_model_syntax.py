"""A model's template, then its settings and its vocabulary show how it writes its answers."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lmwire_protocol import RequestError
from lmwire_worker.models.tokenizer import Tokenizer
from lmwire_worker.models.tokenizer_loading import load_tokenizer
from lmwire_worker.prompts.model_syntax import find_syntax, find_tool_format
from lmwire_worker.sandbox import Limits, process
from random_model import write_model
from support.models.family_turns import TURNS
from support.process.family_worker import tokenizer_of
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


@pytest.mark.parametrize("tag", ["<think>", "<reasoning>", "[THOUGHT]"])
def test_a_tag_that_opens_the_turn_is_that_of_reasoning_if_its_name_says_so(tag: str, opened: Open) -> None:
    end = tag[0] + "/" + tag[1:]
    syntax = find_syntax(opened(f"{MESSAGES}{{{{ 'assistant: {tag.lower()}' }}}}\n"), "llama")
    assert parts_of([f"a{end.lower()}b"], syntax, "reasoning") == [("reasoning", "a"), ("content", "b")]


def test_a_tag_that_opens_the_turn_may_be_that_of_a_role(opened: Open) -> None:
    assert not find_syntax(opened(f"{MESSAGES}<assistant>"), "llama").has_reasoning


@pytest.mark.parametrize(
    ("template", "answer", "parts"),
    [
        (
            "Answer after [BEGIN FINAL RESPONSE] and before [END FINAL RESPONSE].",
            "Here are my reasoning steps:\na\n[BEGIN FINAL RESPONSE]\nb\n[END FINAL RESPONSE]",
            [("reasoning", "\na\n"), ("content", "\nb\n")],
        ),
        (
            "Think first: 'Here is my thought process:'. Then answer: 'Here is my response:'.",
            "Here is my thought process:a Here is my response:b",
            [("reasoning", "a "), ("content", "b")],
        ),
        (
            "Think within <think></think>, and answer within <response></response>.",
            "<think>a</think><response>b</response>",
            [("reasoning", "a"), ("content", "b")],
        ),
        (
            "{{ '<think>' if false }}{{ '</think>' if false }}{{ '<answer></answer>' if false }}",
            "<think>\na\n</think>\n<answer>\nb\n</answer>",
            [("reasoning", "\na\n"), ("content", "\n\nb\n")],
        ),
        (
            "{% if false %}<think></think><response>{{ result }}</response>{% endif %}",
            "<think>a</think><response>b</response>",
            [("reasoning", "a"), ("content", "<response>b</response>")],
        ),
        ("No steps.", "Here are my reasoning steps:\na", [("content", "Here are my reasoning steps:\na")]),
    ],
    ids=["apriel", "granite 3.2", "granite 3.3", "hunyuan", "minimax m2", "none"],
)
def test_texts_that_a_template_asks_for_separate_reasoning_and_content(
    template: str, answer: str, parts: list[tuple[str, str]], opened: Open
) -> None:
    assert parts_of([answer], find_syntax(opened(template + MESSAGES), "llama")) == parts


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
def test_a_template_that_renders_no_call_leaves_it_to_the_settings(
    template: object, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "DEFAULT_LIMITS", Limits(cpu_seconds=0.5))
    assert find_tool_format(opened(template, tool_parser_type="glm47"), "llama").name == "glm47"
    assert find_tool_format(opened(template), "llama").name == "json_tools"
    assert not find_syntax(opened(template), "llama").has_reasoning


def test_a_format_that_is_given_is_not_looked_for(opened: Open) -> None:
    syntax = find_syntax(opened(MESSAGES), "llama", tool_format="mistral_nemo")
    assert (syntax.tools and syntax.tools.name, syntax.assumes_tools) == ("mistral_nemo", False)


def test_a_format_that_does_not_exist_is_refused_with_the_names(opened: Open) -> None:
    with pytest.raises(
        RequestError, match=r"no format is called 'hermes'; give one of .*json_tools, k2_horizon"
    ) as refused:
        find_syntax(opened(MESSAGES), "llama", tool_format="hermes")
    assert (refused.value.code, refused.value.field) == ("invalid_request", "tool_format")


def test_a_model_that_shows_no_format_has_an_assumed_one(opened: Open) -> None:
    assert find_syntax(opened(MESSAGES), "llama").assumes_tools
    assert not find_syntax(opened("[TOOL_CALLS]" + MESSAGES), "llama").assumes_tools


def test_the_search_does_not_list_the_vocabulary(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    tokenizer = opened(MESSAGES)
    monkeypatch.setattr(tokenizer, "get_vocab", None)
    assert find_syntax(tokenizer, "llama").assumes_tools


@pytest.mark.parametrize("name", ["json_tools", "gemma4", "kimi_k3", "deepseek_v3", "mistral_nemo"])
def test_a_search_renders_most_of_its_conversations_together(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    subjects: list[str] = []
    ask = process.Sandbox.ask

    def counted(sandbox: process.Sandbox, question: dict[str, Any], limits: Limits | None = None) -> dict[str, Any]:
        subjects.append(question["subject"])
        return ask(sandbox, question, limits)

    monkeypatch.setattr(process.Sandbox, "ask", counted)
    tokenizer = tokenizer_of(TURNS[name])
    tokenizer.chat_template = f"{TURNS[name].template}{{# {name}, which no test has read before #}}"
    assert find_syntax(tokenizer, "llama").tools is not None
    assert subjects.count("batch") == 1
    # The form of messages, and reasoning beside a call; more in other forms of arguments and ids.
    assert subjects.count("render") <= (16 if name in ("deepseek_v3", "mistral_nemo") else 4)
