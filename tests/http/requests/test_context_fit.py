"""Prompts that are longer than the context, for an API that shortens them."""

import asyncio
from collections.abc import Sequence
from typing import Any, cast

import pytest

from lmwire import AsyncWorker, MessageDict
from lmwire_http.inference.context_fit import fit_conversation, fit_text

CONTEXT_LEN = 2000
LONG = "word " * 400  # 400 tokens
SYSTEM: MessageDict = {"role": "system", "content": LONG}


class CountingWorker:
    """A worker whose tokens are words."""

    def __init__(self) -> None:
        self.counted = 0

    async def count_tokens(self, prompt: str | Sequence[MessageDict], **_: Any) -> int:
        self.counted += 1
        texts = [prompt] if isinstance(prompt, str) else [str(message.get("content", "")) for message in prompt]
        return sum(len(text.split()) for text in texts)


def fit(prompt: Any, worker: CountingWorker | None = None, **options: Any) -> tuple[Any, dict[str, Any]]:
    made = fit_conversation(cast(AsyncWorker, worker or CountingWorker()), prompt, options, CONTEXT_LEN)
    return asyncio.run(made), options


def turn(number: int) -> list[MessageDict]:
    return [{"role": "user", "content": f"{number} {LONG}"}, {"role": "assistant", "content": f"{number} yes"}]


def turns(*numbers: int) -> list[MessageDict]:
    return [message for number in numbers for message in turn(number)]


def test_a_conversation_that_fits_stays_as_it_is() -> None:
    conversation = [SYSTEM, *turns(1, 2, 3)]
    assert fit(conversation) == (conversation, {})


def test_a_short_one_is_not_even_counted() -> None:
    worker = CountingWorker()
    fit([{"role": "user", "content": "hi"}], worker)
    assert worker.counted == 0


def test_the_oldest_turns_go_until_a_quarter_of_the_context_is_left() -> None:
    kept, options = fit([SYSTEM, *turns(1, 2, 3, 4, 5, 6)])
    assert kept == [SYSTEM, *turns(5, 6)]
    assert options == {"truncate": "left", "max_tokens": CONTEXT_LEN // 4}


def test_the_answer_gets_its_length_up_to_half_of_the_context() -> None:
    kept, options = fit([SYSTEM, *turns(1, 2, 3, 4, 5, 6)], max_tokens=10)
    assert (kept, options["max_tokens"]) == ([SYSTEM, *turns(4, 5, 6)], 10)
    kept, options = fit([SYSTEM, *turns(1, 2, 3, 4, 5, 6)], max_tokens=10**6)
    assert (kept, options["max_tokens"]) == ([SYSTEM, *turns(6)], CONTEXT_LEN // 2)


def test_a_last_turn_that_is_too_long_is_cut_by_the_worker() -> None:
    last: MessageDict = {"role": "user", "content": LONG * 9}
    kept, options = fit([*turns(1), last])
    assert (kept, options["truncate"]) == ([last], "left")


def test_results_of_tools_stay_with_their_calls() -> None:
    calls: list[MessageDict] = [
        {"role": "user", "content": LONG * 2},
        {"role": "assistant", "content": "", "tool_calls": [{"id": "a", "name": "look", "arguments": "{}"}]},
        {"role": "tool", "tool_call_id": "a", "content": LONG},
    ]
    kept, _ = fit([*calls, *turns(1, 2, 3)])
    assert kept == turns(1, 2, 3)


@pytest.mark.parametrize(
    ("text", "options", "sent"),
    [
        (LONG, {}, {}),
        (LONG * 6, {}, {"truncate": "left", "max_tokens": CONTEXT_LEN // 4}),
        (LONG * 6, {"max_tokens": 10}, {"truncate": "left", "max_tokens": 10}),
    ],
)
def test_a_text_is_cut_by_the_worker(text: str, options: dict[str, Any], sent: Any) -> None:
    asyncio.run(fit_text(cast(AsyncWorker, CountingWorker()), text, options, CONTEXT_LEN))
    assert options == sent


@pytest.mark.parametrize("part", [{"type": "image", "media": {"data": "AAAA"}}, {"type": "audio", "media": {}}])
def test_a_conversation_with_media_stays_as_it_is(part: Any) -> None:
    conversation = [*turns(*range(9)), {"role": "user", "content": [part]}]
    assert fit(conversation) == (conversation, {})
