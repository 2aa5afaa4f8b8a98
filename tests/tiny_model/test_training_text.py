"""The text that the built-in model learns from."""

import itertools
import json
from typing import Final

import pytest

from corpus import Corpus, examples, texts
from evaluate import held_out, is_right
from lessons import Example, protocol
from lmwire_protocol.commands import COMMANDS
from lmwire_protocol.errors import CLIENT_CODES, CODES, EXIT_CODES
from lmwire_protocol.events import EVENTS
from vocabulary import Renderer, train_tokenizer


def test_the_same_seed_makes_the_same_text_and_another_seed_another() -> None:
    assert list(texts(5, 50)) == list(texts(5, 50))
    assert list(texts(5, 50)) != list(texts(500, 50))


@pytest.mark.nightly
def test_no_question_of_the_evaluation_is_asked_in_training() -> None:
    taught = {question(example) for example in itertools.islice(examples(0), 20_000)}
    asked = {question(example) for example in held_out(20)}
    assert not taught & asked


def question(example: Example) -> str:
    """The question: the newest turn, and the available tools."""
    return json.dumps([example.messages[-1]["content"], example.tools])


@pytest.mark.nightly
def test_names_of_tools_and_parameters_of_the_evaluation_are_new() -> None:
    taught = set().union(*(tool_names(example) for example in itertools.islice(examples(0), 20_000)))
    calls = [example for example in held_out(20) if example.ability in ("one tool call", "two tool calls")]
    asked = set().union(*(tool_names(example) for example in calls))
    assert len(asked) > 50
    assert not taught & asked


def tool_names(example: Example) -> set[str]:
    return {tool["function"]["name"] for tool in example.tools}


NEWER: Final = {"speak", "audio"}
"""A command and an event that are newer than the weights. The next training teaches them."""


def test_every_command_event_and_error_code_of_the_protocol_is_taught() -> None:
    assert set(protocol.COMMANDS) == set(COMMANDS) - NEWER
    assert set(protocol.EVENTS) == set(EVENTS) - NEWER
    assert set(protocol.CODES) == {*CODES, *CLIENT_CODES}
    assert set(protocol.EXITS) == {str(code) for code in EXIT_CODES}
    assert set(protocol.RETRYABLE) == {code for code, (retryable, _) in CODES.items() if retryable} | {
        "model_not_found"
    }


def test_only_answers_are_targets_and_each_ends_its_turn() -> None:
    tokenizer = train_tokenizer(texts(0, 300), 600)
    batch = Corpus(tokenizer, rows=8, length=512, seed=1).batch(0)
    assert batch.example.max() > 1
    for tokens, example, targets in zip(batch.tokens, batch.example, batch.targets, strict=True):
        for number in range(1, example.max() + 1):
            text = tokenizer.decode(tokens[example == number].tolist(), skip_special_tokens=False)
            learnt = targets[(example == number) & (targets >= 0)].tolist()
            answer = tokenizer.decode(learnt, skip_special_tokens=False)
            assert answer.count("<|im_end|>") == 1 and answer.endswith("<|im_end|>")
            prompt = text.removesuffix(answer).removesuffix("<think>\n\n</think>\n\n")
            assert prompt.startswith("<|im_start|>") and prompt.endswith("<|im_start|>assistant\n")


def test_any_unicode_text_survives_the_tokenizer() -> None:
    tokenizer = train_tokenizer(texts(0, 300), 600)
    text = "añ 日本語 नमस्ते 👩‍👩‍👧 \u0000 \u2028 1234  x\n\n"
    assert tokenizer.decode(tokenizer.encode(text).ids, skip_special_tokens=False) == text


def test_an_answer_is_right_when_it_means_the_same() -> None:
    call = Example("", [], '<tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call>')
    assert is_right(call, '<tool_call>{"arguments":{"a":1},"name":"f"}</tool_call>')
    assert not is_right(call, '<tool_call>\n{"name": "f", "arguments": {"a": 2}}\n</tool_call>')
    assert not is_right(call, f"{call.answer}\n{call.answer}")
    assert not is_right(call, "<tool_call>\n{")
    assert is_right(Example("", [], '{"a": [1]}'), '{ "a": [1] }')
    assert not is_right(Example("", [], "4 + 4 = 8."), "4 + 4 = 8")


def test_the_renderer_writes_what_transformers_writes() -> None:
    from transformers import AutoTokenizer

    from lmwire_worker.models.resolve import BUILTIN

    tokenizer = AutoTokenizer.from_pretrained(BUILTIN / "tiny")
    renderer = Renderer()
    for example in itertools.islice(examples(7), 200):
        rendered = tokenizer.apply_chat_template(
            example.messages,
            tools=example.tools or None,
            enable_thinking=example.thinking,
            add_generation_prompt=True,
            tokenize=False,
        )
        assert rendered == renderer.prompt(example)
