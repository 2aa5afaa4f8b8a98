"""Completions with OpenAI's own client: prompts of every kind, echo, log-probabilities, streams."""

import asyncio
from typing import Any

import openai
import pytest
from openai import AsyncOpenAI, OpenAI

from support.http.http_server import Server

pytestmark = pytest.mark.slow

TINY = "builtin:tiny"
PROMPT = "I am the"


@pytest.fixture(scope="module")
def client(tiny_server: Server) -> OpenAI:
    return OpenAI(base_url=f"{tiny_server.url}/v1", api_key="any", max_retries=0)


def go_on(client: OpenAI, prompt: Any, **options: Any) -> Any:
    options = {"temperature": 0, "max_tokens": 4, **options}
    return client.completions.create(model=TINY, prompt=prompt, **options)


def test_a_prompt_is_continued(client: OpenAI) -> None:
    answer = go_on(client, PROMPT)
    [choice] = answer.choices
    assert choice.text == " tiny tiny."
    assert (choice.index, choice.finish_reason, choice.logprobs) == (0, "stop", None)
    assert (answer.object, answer.model) == ("text_completion", TINY)
    assert answer.usage.completion_tokens == 4
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + 4


def test_a_text_ends_after_16_tokens_unless_told_otherwise(client: OpenAI) -> None:
    answer = client.completions.create(model=TINY, prompt=PROMPT, extra_body={"ignore_eos": True})
    assert answer.usage and answer.usage.completion_tokens == 16


def test_token_ids_are_a_prompt_as_their_text_is(client: OpenAI) -> None:
    assert go_on(client, [40]).choices[0].text == go_on(client, "I").choices[0].text
    both = go_on(client, [[40], [40, 504, 317]])
    assert [choice.text for choice in both.choices] == [
        go_on(client, ids).choices[0].text for ids in ([40], [40, 504, 317])
    ]
    assert both.usage.prompt_tokens == 4


def test_several_prompts_have_their_choices_in_order(client: OpenAI) -> None:
    prompts = [PROMPT, "I", "Hello", "2 + 2 ="] * 12
    answer = go_on(client, prompts, max_tokens=3, extra_body={"ignore_eos": True})
    assert [choice.index for choice in answer.choices] == list(range(48))
    alone = [
        go_on(client, prompt, max_tokens=3, extra_body={"ignore_eos": True}).choices[0].text for prompt in prompts[:4]
    ]
    assert [choice.text for choice in answer.choices] == alone * 12
    assert answer.usage.completion_tokens == 48 * 3


def test_each_prompt_has_n_choices(client: OpenAI) -> None:
    answer = go_on(client, ["I", "Hello"], n=2, best_of=2)
    texts = [choice.text for choice in answer.choices]
    assert [choice.index for choice in answer.choices] == [0, 1, 2, 3]
    assert texts[0] == texts[1] != texts[2] == texts[3]


def test_echo_puts_the_prompt_in_front(client: OpenAI) -> None:
    assert go_on(client, PROMPT, echo=True).choices[0].text.startswith("I am the tiny")
    assert go_on(client, PROMPT, echo=True, max_tokens=0).choices[0].text == PROMPT
    streamed = go_on(client, [PROMPT, "Hello"], echo=True, stream=True)
    texts = ["", ""]
    for chunk in streamed:
        texts[chunk.choices[0].index] += chunk.choices[0].text
    assert texts == [choice.text for choice in go_on(client, [PROMPT, "Hello"], echo=True).choices]


def test_log_probabilities_come_in_lists_of_one_length(client: OpenAI) -> None:
    choice = go_on(client, PROMPT, logprobs=2).choices[0]
    reported = choice.logprobs
    assert "".join(reported.tokens) == choice.text
    assert all(
        choice.text[offset:].startswith(token)
        for token, offset in zip(reported.tokens, reported.text_offset, strict=True)
    )
    assert len(reported.tokens) == len(reported.token_logprobs) == len(reported.top_logprobs) == 3
    for token, logprob, top in zip(reported.tokens, reported.token_logprobs, reported.top_logprobs, strict=True):
        assert top[token] == logprob <= 0
        assert len(top) == 2
    assert [set(top) for top in go_on(client, PROMPT, logprobs=0).choices[0].logprobs.top_logprobs] == [
        {token} for token in reported.tokens
    ]


def test_offsets_count_characters_where_tokens_are_parts_of_them(client: OpenAI) -> None:
    choice = client.completions.create(
        model=TINY,
        prompt="x",
        max_tokens=5,
        logprobs=0,
        extra_body={"format": {"type": "choice", "choices": ["é€🦆!"]}},
    ).choices[0]
    reported = choice.logprobs
    assert reported and reported.text_offset and reported.tokens
    assert choice.text.startswith("é€")
    assert reported.text_offset == sorted(reported.text_offset)
    assert reported.text_offset[-1] <= len(choice.text)
    assert any(token.startswith("bytes:\\x") for token in reported.tokens)


def test_a_stream_brings_the_same_as_the_whole(client: OpenAI) -> None:
    options = {"n": 2, "logprobs": 1, "temperature": 2, "seed": 5, "max_tokens": 8}
    whole = go_on(client, [PROMPT, "Hello"], **options)
    *chunks, last = go_on(client, [PROMPT, "Hello"], **options, stream=True, stream_options={"include_usage": True})
    assert last.choices == [] and last.usage == whole.usage.model_copy(
        update={"prompt_tokens_details": last.usage.prompt_tokens_details}
    )
    for choice in whole.choices:
        of_it = [chunk.choices[0] for chunk in chunks if chunk.choices[0].index == choice.index]
        assert "".join(part.text for part in of_it) == choice.text
        assert [part.finish_reason for part in of_it if part.finish_reason] == [choice.finish_reason]
        offsets = [offset for part in of_it if part.logprobs for offset in part.logprobs.text_offset]
        assert offsets == choice.logprobs.text_offset


def test_tasks_stream_beside_each_other(mock_server: Server) -> None:
    async def echoes(client: AsyncOpenAI, text: str) -> str:
        stream = await client.completions.create(model="mock", prompt=text, max_tokens=8, stream=True)
        return "".join([chunk.choices[0].text async for chunk in stream])

    async def all_of_them(texts: list[str]) -> list[str]:
        async with AsyncOpenAI(base_url=f"{mock_server.url}/v1", api_key="any") as client:
            return await asyncio.gather(*(echoes(client, text) for text in texts))

    texts = [f"these eight words are of text number {number}" for number in range(20)]
    assert asyncio.run(all_of_them(texts)) == texts


def test_a_stop_string_ends_a_text(client: OpenAI) -> None:
    [choice] = go_on(client, PROMPT, stop=[" tiny."]).choices
    assert (choice.text, choice.finish_reason) == (" tiny", "stop")


@pytest.mark.parametrize(
    ("prompt", "fields", "param"),
    [
        ("", {}, "prompt"),
        ([], {}, "prompt"),
        (["a", 1], {}, "prompt[1]"),
        (["a", ""], {}, "prompt[1]"),
        ([[1], [1, 5000]], {}, "prompt[1][1]"),
        ([1, -1], {}, "prompt[1]"),
        (["a", 1.5], {}, "prompt[1]"),
        ("a", {"suffix": "b"}, "suffix"),
        ("a", {"best_of": 2, "stream": True}, "best_of"),
        ("a", {"best_of": 17}, "best_of"),
        (None, {}, "prompt"),
        (None, {"echo": True}, "prompt"),
        ("a", {"n": 2, "best_of": 1}, "best_of"),
        ("a", {"echo": True, "logprobs": 1, "stream": True}, "echo"),
        ([1], {"echo": True, "stream": True}, "echo"),
        ("a", {"logprobs": 21}, "logprobs"),
        ("a", {"logprobs": True}, "logprobs"),
        ("a", {"max_tokens": -1}, "max_tokens"),
        ("a", {"stop": [""]}, "stop[0]"),
        ("a", {"messages": [{"role": "user", "content": "x"}]}, "messages"),
    ],
    ids=str,
)
def test_a_field_that_is_wrong_is_named(client: OpenAI, prompt: Any, fields: dict[str, Any], param: str) -> None:
    with pytest.raises(openai.BadRequestError) as failure:
        client.completions.create(model=TINY, prompt=prompt, extra_body=fields)
    assert failure.value.param == param
    assert param in failure.value.message


def test_one_prompt_that_fails_ends_the_others(client: OpenAI) -> None:
    with pytest.raises(openai.BadRequestError) as failure:
        go_on(client, ["Hello", "lmwire " * 3000], max_tokens=1000)
    assert failure.value.code == "context_length_exceeded"
    with pytest.raises(openai.APIError):
        list(go_on(client, ["Hello", "lmwire " * 3000], max_tokens=1000, stream=True))
