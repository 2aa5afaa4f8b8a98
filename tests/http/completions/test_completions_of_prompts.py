"""Completions of several prompts are one request to their client: none of its parts outlives it."""

import json
from collections.abc import Iterator

import openai
import pytest
from openai import OpenAI

from support.http.http_server import MOCK, Server, served

ACTIVE = "lmwire_worker_requests_active"
ENDED = "lmwire_worker_requests_total"
RULES = [
    {"match": {"prompt": "wait"}, "reply": {"tokens": ["One"], "then": "wait"}},
    {"match": {"prompt": "fail"}, "reply": {"error": {"code": "engine_error"}}},
]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    scenario = tmp_path_factory.mktemp("scenario") / "waiting.json"
    scenario.write_text(json.dumps({"rules": RULES}))
    with served("--worker", f"{MOCK} --scenario {scenario}") as server:
        yield server


@pytest.fixture
def client(server: Server) -> Iterator[OpenAI]:
    with OpenAI(base_url=f"{server.url}/v1", api_key="any", max_retries=0) as client:
        client.completions.create(model="mock", prompt="so that the worker is there, and tells", max_tokens=1)
        yield client


def test_a_client_that_leaves_a_stream_leaves_all_of_it(server: Server, client: OpenAI) -> None:
    before = server.figure(ENDED, outcome="cancelled")
    with client.completions.create(model="mock", prompt=["wait"] * 40, max_tokens=9, stream=True) as stream:
        assert next(iter(stream)).choices[0].text == "One"
        server.wait_for(ACTIVE, 32)  # the others wait until one of these has ended
    server.wait_for(ACTIVE, 0)
    server.wait_for(ENDED, before + 32, outcome="cancelled")


@pytest.mark.parametrize("stream", [False, True])
def test_a_prompt_that_fails_ends_those_that_still_run(server: Server, client: OpenAI, stream: bool) -> None:
    before = server.figure(ENDED, outcome="cancelled")
    with pytest.raises(openai.APIError) as failure:
        list(client.completions.create(model="mock", prompt=["wait", "wait", "fail"], max_tokens=9, stream=stream))
    assert failure.value.code == "engine_error"
    server.wait_for(ACTIVE, 0)
    server.wait_for(ENDED, before + 2, outcome="cancelled")


def test_more_prompts_than_run_at_once_are_all_answered_in_order(client: OpenAI) -> None:
    prompts = [f"number {number}" for number in range(100)]
    answer = client.completions.create(model="mock", prompt=prompts, max_tokens=2)
    assert [choice.text for choice in answer.choices] == prompts
    texts = dict.fromkeys(range(100), "")
    for chunk in client.completions.create(model="mock", prompt=prompts, max_tokens=2, stream=True):
        texts[chunk.choices[0].index] += chunk.choices[0].text
    assert list(texts.values()) == prompts
