"""/api/chat through Ollama's own client: whole answers, streams, reasoning, formats and options."""

import asyncio
import json
from typing import Any

import ollama
import pytest
from pydantic import BaseModel

from support.http.http_server import Server
from support.http.ollama_http import GREEDY, MODEL, async_client, client, user

TINY = "builtin:tiny"
ASKED = [user("Who are you?")]


class Person(BaseModel):
    """Somebody."""

    name: str
    born: int


@pytest.fixture(scope="module")
def tiny(tiny_server: Server) -> ollama.Client:
    return client(tiny_server)


@pytest.fixture(scope="module")
def scripted(scripted_server: Server) -> ollama.Client:
    return client(scripted_server)


@pytest.mark.slow
def test_an_answer_has_its_message_its_counts_and_its_times(tiny: ollama.Client) -> None:
    answer = tiny.chat(TINY, ASKED, options=GREEDY)
    assert (answer.model, answer.done, answer.done_reason) == (TINY, True, "stop")
    assert (answer.message.role, "lmwire" in (answer.message.content or "")) == ("assistant", True)
    assert answer.prompt_eval_count == 13
    assert answer.eval_count and answer.eval_count > 3
    times = [answer.load_duration, answer.prompt_eval_duration, answer.eval_duration]
    assert answer.total_duration and all(time and time <= answer.total_duration for time in times)


@pytest.mark.slow
def test_a_stream_has_the_same_text_and_ends_with_the_counts(tiny: ollama.Client) -> None:
    *parts, last = tiny.chat(TINY, ASKED, options=GREEDY, stream=True)
    assert parts
    assert all((part.done, part.done_reason, part.eval_count) == (False, None, None) for part in parts)
    whole = tiny.chat(TINY, ASKED, options=GREEDY)
    assert (last.done, last.done_reason, last.message.content) == (True, "stop", "")
    assert (last.prompt_eval_count, last.eval_count) == (whole.prompt_eval_count, whole.eval_count)
    assert "".join(part.message.content or "" for part in parts) == whole.message.content


@pytest.mark.slow
def test_tasks_get_the_same_answers_whole_and_streamed(tiny_server: Server) -> None:
    async def answers() -> list[str | None]:
        async with async_client(tiny_server) as client:
            whole = [client.chat(TINY, ASKED, options=GREEDY) for _ in range(2)]
            contents = [answer.message.content for answer in await asyncio.gather(*whole)]
            parts = await client.chat(TINY, ASKED, options=GREEDY, stream=True)
            return [*contents, "".join([part.message.content or "" async for part in parts])]

    first, *others = asyncio.run(answers())
    assert first and others == [first, first]


@pytest.mark.slow
def test_the_tag_latest_stands_for_no_tag(tiny: ollama.Client) -> None:
    answer = tiny.chat(f"{TINY}:latest", ASKED, options=GREEDY)
    assert (answer.model, "lmwire" in (answer.message.content or "")) == (f"{TINY}:latest", True)


@pytest.mark.slow
def test_reasoning_is_apart_from_the_content(tiny: ollama.Client) -> None:
    message = tiny.chat(TINY, [user("What is 17 + 25?")], think=True, options=GREEDY).message
    assert message.thinking and "42" in (message.content or "")
    *parts, last = tiny.chat(TINY, [user("What is 17 + 25?")], think=True, options=GREEDY, stream=True)
    assert "".join(part.message.thinking or "" for part in parts) == message.thinking
    assert "".join(part.message.content or "" for part in parts) == message.content
    assert last.done


@pytest.mark.parametrize(
    ("think", "expected"), [(None, "defaults"), (False, "off"), ("low", "on, low"), ("high", "on, high")]
)
def test_think_turns_reasoning_on_or_off_or_is_its_effort(scripted: ollama.Client, think: Any, expected: str) -> None:
    assert scripted.chat(MODEL, [user("options")], think=think).message.content == expected


def test_think_is_refused_for_a_model_without_reasoning(scripted_server: Server) -> None:
    with pytest.raises(ollama.ResponseError, match=r"^think: ") as error:
        client(scripted_server).chat(MODEL, [user("never reasons")], think=True)
    assert error.value.status_code == 400


def test_earlier_reasoning_is_read(scripted: ollama.Client) -> None:
    earlier = {"role": "assistant", "content": "4", "thinking": "2 and 2"}
    assert scripted.chat(MODEL, [user("2 + 2?"), earlier, user("think aloud")]).message.content == "It is 4."


@pytest.mark.slow
def test_a_format_is_any_json_or_that_of_a_schema(tiny: ollama.Client) -> None:
    asked = [user("Ada was born in 1815.")]
    ada = tiny.chat(TINY, asked, format=Person.model_json_schema(), options=GREEDY)
    assert Person.model_validate_json(ada.message.content or "")
    free = tiny.chat(TINY, asked, format="json", options={**GREEDY, "num_predict": 200})
    assert isinstance(json.loads(free.message.content or ""), dict)


def test_options_reach_the_worker(scripted: ollama.Client) -> None:
    options = {"temperature": 0.5, "top_p": 0.9, "top_k": 20, "seed": 7, "min_p": 0.1}
    assert scripted.chat(MODEL, [user("options")], options=options).message.content == "sampled"
    penalties = {"repeat_penalty": 1.1, "repeat_last_n": 32, "presence_penalty": 0.5, "frequency_penalty": 0.25}
    assert scripted.chat(MODEL, [user("options")], options=penalties).message.content == "penalized"


def test_values_that_stand_for_none_are_none(scripted: ollama.Client) -> None:
    off = {"num_predict": -1, "top_k": -1, "seed": -1, "repeat_penalty": 1.3, "repeat_last_n": 0}
    assert scripted.chat(MODEL, [user("options")], options=off).message.content == "defaults"


@pytest.mark.parametrize(("options", "reason"), [({"num_predict": 2}, "length"), ({"stop": ["two"]}, "stop")])
def test_an_answer_ends_at_a_limit_or_a_stop_string(scripted: ollama.Client, options: Any, reason: str) -> None:
    answer = scripted.chat(MODEL, [user("one two three")], options=options)
    assert (answer.done_reason, answer.message.content) == (reason, "one two " if reason == "length" else "one ")


def test_log_probabilities_are_those_of_the_content(scripted: ollama.Client) -> None:
    answer = scripted.chat(MODEL, [user("one two")], logprobs=True, top_logprobs=2)
    assert answer.logprobs and [each.token for each in answer.logprobs] == ["one ", "two"]
    assert answer.logprobs[0].logprob == 0 and len(answer.logprobs[0].top_logprobs or ()) == 2
    parts = scripted.chat(MODEL, [user("one two")], logprobs=True, stream=True)
    assert [each.token for part in parts for each in part.logprobs or ()] == ["one ", "two"]
