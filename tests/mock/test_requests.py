"""The mock's runner by itself: its use of prompts, and the requests that it refuses."""

from typing import Any

import pytest

from lmwire_protocol import FEATURES, Load, RequestError, Tokenize
from lmwire_worker.mock import MockModelLoader
from lmwire_worker.mock.replies import Reply
from lmwire_worker.mock.scenario import Match, Rule, Script
from support.process.mock_host import LOAD, mock
from support.process.worker_thread import run_on_thread
from support.runners.mock_runners import KEY, answer, chat, refused, runner

Json = dict[str, Any]


def test_a_prefix_is_of_the_prompt_and_not_of_the_answer() -> None:
    request = chat("a b", prefix="Sure, here")
    assert runner().add(KEY, request, 1).prompt_tokens == 3
    assert answer(Reply(), request).content == "a b"


def test_a_conversation_may_end_with_an_empty_message() -> None:
    assert answer(Reply(), chat("")).finish_reason == "stop"


def test_an_image_becomes_a_note_or_is_refused() -> None:
    parts = [{"type": "text", "text": "See: "}, {"type": "image", "media": {"url": "http://x/y.png"}}]
    fields: Json = {"messages": [{"role": "user", "content": parts}]}
    assert answer(Reply(), chat(**fields)).content == "See: \n[1 image was attached]"
    error = refused(chat(**fields, strict_media=True))
    assert (error.code, error.field) == ("unsupported", "messages[0].content[1]")


def test_a_message_that_calls_cannot_be_gone_on_with() -> None:
    call = {"id": "1", "name": "weather", "arguments": {}}
    messages = [{"role": "assistant", "tool_calls": [call]}]
    continued = chat(messages=messages, add_generation_prompt=False, continue_final_message=True)
    assert refused(continued).field == "continue_final_message"
    assert answer(Reply(text="So."), chat(messages=messages, add_generation_prompt=False)).content == "So."
    assert answer(Reply(text="So."), chat(messages=messages)).content == "So."


def test_words_are_tokens() -> None:
    mock = runner()
    assert mock.tokenize(Tokenize(prompt="to be or")) == ([0, 1, 2], "to be or")
    assert mock.tokenize(Tokenize(token_ids=[7, 8])) == ([7, 8], "7 8 ")
    messages = chat("not to").messages
    assert mock.tokenize(Tokenize(messages=messages, prefix=" be")) == ([3, 0, 4], "not to be")


@pytest.mark.parametrize("text", ["to be or not to be", "  two\n\nlines ", "größer 漢字\u2028😀", "x " * 5000])
def test_the_ids_of_a_text_give_the_text_again(text: str) -> None:
    lines = run_on_thread(mock(), LOAD, {"id": "t", "cmd": "tokenize", "prompt": text})
    events = [event for event in lines.of("t") if event["event"] == "token"]
    assert "".join(event["token"] for event in events) == text
    ids = [id for event in events for id in event["token_ids"]]
    assert lines.terminals("t")[0]["count"] == len(ids)
    same = runner()
    assert same.tokenize(Tokenize(prompt=text)) == (ids, text)
    assert same.tokenize(Tokenize(token_ids=ids)) == (ids, text)


def test_the_ids_of_a_text_stay_those_of_later_texts_until_a_mebibyte_is_read() -> None:
    same = runner()
    (ids, _), long = same.tokenize(Tokenize(prompt="to be")), "word" * (1 << 18)
    same.tokenize(Tokenize(prompt=long))
    assert same.tokenize(Tokenize(token_ids=[*ids, 2])) == ([0, 1, 2], "to be" + long)
    same.tokenize(Tokenize(prompt="or"))
    assert same.tokenize(Tokenize(token_ids=[0, 1])) == ([0, 1], "or1 ")


@pytest.mark.parametrize("wish", ["auto", "on", "off"])
def test_thinking_or_not_the_prompt_has_the_same_words(wish: str) -> None:
    request = chat("to be or", reasoning=wish)
    tokens, text = runner().tokenize(Tokenize(messages=request.messages, reasoning=request.reasoning))
    assert (len(tokens), text) == (runner().add(KEY, request, 1).prompt_tokens, "to be or")


# Unsupported fields.

UNSERVED: dict[str, Any] = {
    "format": {"type": "json_object"},
    "chat_template": "{{ messages }}",
    "template_args": {"enable_thinking": False},
}


@pytest.mark.parametrize("name", UNSERVED)
def test_an_unsupported_option_is_refused_unless_a_rule_matches_it(name: str) -> None:
    request = chat(**{name: UNSERVED[name]})
    for rules in ([], [Rule(Reply(text="{}"))]):
        error = refused(request, *rules)
        assert (error.code, error.field) == ("unsupported", name)
    assert answer(Reply(text="{}"), request, match=Match(has=[name])).content == "{}"


def test_a_template_of_the_hosts_own_cannot_be_counted() -> None:
    with pytest.raises(RequestError) as error:
        runner().tokenize(Tokenize(messages=chat().messages, chat_template="x"))
    assert (error.value.code, error.value.field) == ("unsupported", "chat_template")


def test_a_bias_for_a_token_that_there_is_not_is_refused() -> None:
    error = refused(chat(logit_bias={str(1 << 20): 1}))
    assert (error.code, error.field) == ("invalid_request", f"logit_bias.{1 << 20}")


def test_the_features_are_what_is_served() -> None:
    missing = {
        *("load.adapter_path", "load.draft_path", "load.kv_bits", "load.chat_template_name"),
        *("load.tool_format", "load.dtype"),
        *("load.reasoning_start", "load.reasoning_end"),
        *("load.generation_config", "load.path.absent"),
        *("generate.format", "chat.format", "chat.chat_template", "chat.template_args"),
    }
    assert set(MockModelLoader().features) == set(FEATURES) - missing
    script = Script([Rule(Reply(text="{}"), Match(cmd="chat", has=["format"]))])
    assert set(MockModelLoader(script).features) == set(FEATURES) - missing | {"chat.format"}


def test_the_capabilities_are_the_runners_commands_and_gaps() -> None:
    opened = MockModelLoader().open(Load(path="mock"), lambda *progress: None, lambda: None)
    assert opened.model.capabilities == ["generate", "chat", "tokenize", "embed", "transcribe", "speak", "suffix"]
