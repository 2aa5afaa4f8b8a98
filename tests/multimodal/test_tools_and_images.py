"""Calls of tools in conversations with images: read, answered, and answered with images."""

import json
from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from lmwire_protocol import CalledTool, Chat, Message, TextPart, Tokenize
from lmwire_worker.generation.runner import GenerationRunner
from support.media.shown_images import image, said, shown
from support.models.talking_vision import CALL, TOOLS, WEATHER
from support.runners.generation_runners import ask, chat, gather

pytestmark = pytest.mark.slow

ONE, OTHER = image(1), image(2)
CALLED = CalledTool(id="call_1", name=WEATHER.function.name, arguments={"city": "Rome"})
CONVERSATION = [
    said("What is the weather where ", ONE, " is?"),
    Message(role="assistant", tool_calls=[CALLED]),
    Message(role="tool", content="sunny", tool_call_id=CALLED.id),
]


def images_in(runner: GenerationRunner, messages: Sequence[Message]) -> list[int]:
    """Return the indices of image tokens in a conversation."""
    request = Tokenize(messages=list(messages), tools=TOOLS)
    tokens, _ = runner.tokenize(request, gather(runner, request))
    find = runner.preparer.tokenizer.convert_tokens_to_ids
    placeholders = (find("<|image_pad|>"), find("<image_soft_token>"))
    return [place for place, token in enumerate(tokens) if token in placeholders]


def test_a_call_that_the_model_makes_of_itself_is_read(talker: GenerationRunner) -> None:
    strict = replace(WEATHER, function=replace(WEATHER.function, strict=True))
    opening = talker.preparer.tokenizer.convert_tokens_to_ids(CALL)
    fields = {"tools": [strict], "logit_bias": {opening: 100}, "parallel_tool_calls": False, "max_tokens": 80}
    request = shown(ONE, "How is the weather?", reasoning="off", **fields)
    plain = shown(ONE, "How is the weather?", max_tokens=20)
    answer, neighbour, text = ask(talker, request, plain, chat("How is the weather?", reasoning="off", **fields))
    for called in (answer, text):
        (call,) = called.calls
        assert (call.name, call.complete, called.finish_reason, called.text) == ("get_weather", True, "tool_calls", "")
        assert json.loads(call.arguments)["city"] in ("Rome", "Paris")
    assert neighbour.token_ids == ask(talker, replace(plain, cache="off"))[0].token_ids
    assert not neighbour.calls


def test_after_a_tools_result_the_image_is_still_there_and_not_processed_again(talker: GenerationRunner) -> None:
    talker.clear_cache()
    ask(talker, Chat(messages=CONVERSATION[:1], tools=TOOLS, max_tokens=0))
    request = Chat(messages=CONVERSATION, tools=TOOLS, max_tokens=12)
    admitted = talker.add(0, request, 0, prepared=gather(talker, request))
    talker.start_waiting()
    talker.remove(0)
    places = images_in(talker, CONVERSATION)
    assert places == images_in(talker, CONVERSATION[:1]) != []
    assert places[-1] < admitted.cached_tokens < admitted.prompt_tokens
    (warm,), (cold,) = ask(talker, request), ask(talker, replace(request, cache="off"))
    assert (warm.error, warm.token_ids) == (None, cold.token_ids)


def test_a_tools_result_can_be_an_image(talker: GenerationRunner) -> None:
    result = replace(CONVERSATION[-1], content=[TextPart(text="a photo: "), OTHER])
    with_photo = [*CONVERSATION[:-1], result]
    assert len(images_in(talker, with_photo)) > len(images_in(talker, CONVERSATION))
    requests = [Chat(messages=messages, tools=TOOLS, max_tokens=12) for messages in (CONVERSATION, with_photo)]
    without, answer = ask(talker, *requests)
    assert (without.error, answer.error) == (None, None)
    assert without.token_ids != answer.token_ids
