"""Chat completions for clients of llama.cpp's server, which ask for what that server alone reports."""

import json
from collections.abc import Sequence
from typing import Any, Final

import pytest

from support.http.http_server import Server
from support.http.raw_http import CHAT, asked

FIELDS: Final = ("timings_per_token", "return_progress", "verbose")


def ask(server: Server, **fields: Any) -> bytes:
    messages = [{"role": "user", "content": "Who are you?"}]
    reply = asked(server.url, "POST", CHAT, {"messages": messages, "max_tokens": 5, "temperature": 0, **fields})
    assert reply.status == 200, reply
    assert "x-lmwire-ignored-fields" not in reply.headers
    return reply.body


def chunks(server: Server, **fields: Any) -> list[Any]:
    """Return the chunks of a stream."""
    lines = ask(server, stream=True, **fields).decode().splitlines()
    return [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: {")]


def first_deltas(stream: Sequence[Any]) -> dict[int, Any]:
    """Return the first delta of each choice."""
    return {choice["index"]: choice["delta"] for chunk in reversed(stream) for choice in chunk["choices"]}


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("n", [1, 2])
def test_the_role_comes_with_null(mock_server: Server, field: str, n: int) -> None:
    stream = chunks(mock_server, model="mock", n=n, **{field: True})
    assert first_deltas(stream) == {index: {"role": "assistant", "content": None} for index in range(n)}


@pytest.mark.parametrize("fields", [{}, dict.fromkeys(FIELDS, False)], ids=["absent", "false"])
def test_in_other_streams_it_comes_with_an_empty_text(mock_server: Server, fields: Any) -> None:
    stream = chunks(mock_server, model="mock", **fields)
    assert stream[0]["choices"][0]["delta"] == {"role": "assistant", "content": "", "refusal": None}
    assert not any("timings" in chunk for chunk in stream)


@pytest.mark.slow
def test_the_role_comes_once_and_with_the_first_progress(tiny_server: Server) -> None:
    first, *others = chunks(tiny_server, return_progress=True)
    assert first["choices"][0]["delta"]["role"] == "assistant"
    assert first["prompt_progress"]["processed"] == first["prompt_progress"]["cache"]
    assert not any("role" in choice["delta"] for chunk in others for choice in chunk["choices"])


@pytest.mark.slow
@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("has_usage", [False, True])
def test_the_last_chunk_has_the_times(tiny_server: Server, field: str, has_usage: bool) -> None:
    *_, last = chunks(tiny_server, stream_options={"include_usage": has_usage}, **{field: True})
    assert (last["choices"] == []) == has_usage
    timings = last["timings"]
    assert timings["predicted_n"] == 5
    assert timings["prompt_ms"] > 0 < timings["predicted_per_second"]
    if has_usage:
        usage = last["usage"]
        assert timings["cache_n"] == usage["prompt_tokens_details"]["cached_tokens"]
        assert timings["cache_n"] + timings["prompt_n"] == usage["prompt_tokens"]


@pytest.mark.slow
def test_the_chunks_before_it_have_times_only_with_timings_per_token(tiny_server: Server) -> None:
    *before, _ = chunks(tiny_server, return_progress=True)
    assert not any("timings" in chunk for chunk in before)


@pytest.mark.slow
def test_with_timings_per_token_each_part_of_the_answer_has_the_times_so_far(tiny_server: Server) -> None:
    role, *parts, last = chunks(tiny_server, timings_per_token=True)
    assert "timings" not in role
    assert [part["timings"]["predicted_n"] for part in parts] == [1, 2, 3, 4, 5]
    of_prompt = {(part["timings"]["cache_n"], part["timings"]["prompt_n"]) for part in parts}
    assert of_prompt == {(last["timings"]["cache_n"], last["timings"]["prompt_n"])}


@pytest.mark.slow
def test_a_whole_answer_has_the_times_too(tiny_server: Server) -> None:
    assert "timings" not in json.loads(ask(tiny_server))
    assert json.loads(ask(tiny_server, timings_per_token=True))["timings"]["predicted_n"] == 5


@pytest.mark.slow
def test_a_verbose_answer_shows_the_prompt_that_the_model_was_given(tiny_server: Server) -> None:
    conversation = {"messages": [{"role": "user", "content": "Who are you?"}], "prefix": "I am"}
    rendered = asked(tiny_server.url, "POST", "/apply-template", conversation).json["prompt"]
    assert "Who are you?" in rendered
    whole = json.loads(ask(tiny_server, verbose=True, prefix="I am"))
    *before, last = chunks(tiny_server, verbose=True, prefix="I am")
    assert whole["__verbose"] == last["__verbose"] == {"prompt": rendered}
    assert not any("__verbose" in chunk for chunk in before)


@pytest.mark.parametrize("fields", [{}, {"verbose": False}, {"verbose": None}, {"timings_per_token": True}])
def test_other_answers_do_not_show_it(mock_server: Server, fields: Any) -> None:
    assert "__verbose" not in json.loads(ask(mock_server, model="mock", **fields))
