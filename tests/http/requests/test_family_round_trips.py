"""A call, its result and a second call over HTTP, in every family: what the model reads continues what it wrote.

A worker on a thread has a real runner, whose network writes the family's own answers.
"""

import json
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from lmwire import AsyncWorker
from lmwire_http.pool import replica
from lmwire_worker.output_parsing import FAMILIES
from support.http.http_server import MOCK, Server, served
from support.http.raw_http import asked
from support.models import tool_samples
from support.models.family_turns import Turns
from support.models.family_variants import ALL_TURNS
from support.nightly import nightly_but
from support.process.family_worker import FamilyRunner, family_worker

SCHEMA = {
    "type": "object",
    "properties": {"path": {"type": "string"}, "line": {"type": "integer"}},
    "required": ["path", "line"],
}
EDIT = {"name": "edit", "description": "Edits a file.", "parameters": SCHEMA}
ARGUMENTS = {"path": "a.c", "line": 2}
ASKED, DONE, LATER = "Edit it.", "Done: 1 line.", "And now?"
THOUGHTS = ("Look at it first.", "Once more.")


class Models:
    """A server of models that a test defines."""

    def __init__(self, server: Server, runners: dict[str, FamilyRunner]) -> None:
        self._server, self._runners = server, runners

    def unload(self) -> None:
        """Unload the models. Each would keep ten descriptors, and the process may have two thousand."""
        for name in self._runners:
            asked(self._server.url, "POST", "/v1/models/unload", {"model": name})
        self._runners.clear()

    def model(self, name: str, turns: Turns, answers: list[str]) -> "Model":
        """Return a new model of a family, which gives these answers."""
        runner = FamilyRunner(turns, answers)
        self._runners[name] = runner
        return Model(self._server.url, name, runner.prompts)


class Model:
    """A model on a server.

    Args:
        url: The server's address.
        name: The model's name.
        prompts: The prompts that the model has read, which grow.
    """

    def __init__(self, url: str, name: str, prompts: list[str]) -> None:
        self.prompts = prompts
        self._url, self._name = url, name

    def ask(self, path: str, **body: Any) -> dict[str, Any]:
        """Return the reply to a request."""
        answer = asked(self._url, "POST", path, json.dumps({"model": self._name, **body}).encode())
        assert answer.status == 200, answer.body
        return answer.json


@pytest.fixture(scope="module")
def empty_server() -> Iterator[Models]:
    runners: dict[str, FamilyRunner] = {}
    with pytest.MonkeyPatch.context() as patched, served("--worker", MOCK) as server:
        patched.setattr(replica, "AsyncWorker", partial(AsyncWorker, spawn=partial(family_worker, runners)))
        yield Models(server, runners)


@pytest.fixture
def models(empty_server: Models) -> Iterator[Models]:
    yield empty_server
    empty_server.unload()


Turn = tuple[list[Any], str]
"""The messages that continue a conversation, and the reasoning that the model reported."""


def answer_enforced(model: Model, messages: list[Any]) -> Turn:
    """Demand a call with OpenAI's API; see `answer_openai`."""
    return answer_openai(model, messages, "required")


def answer_openai(model: Model, messages: list[Any], tool_choice: str = "auto") -> Turn:
    """Ask with OpenAI's API, and return the answer and the call's result as messages."""
    tools = [{"type": "function", "function": EDIT}]
    options = {"tools": tools, "tool_choice": tool_choice, "max_tokens": 400}
    (choice,) = model.ask("/v1/chat/completions", messages=messages, **options)["choices"]
    assert choice["finish_reason"] == "tool_calls"
    message = choice["message"]
    (call,) = message["tool_calls"]
    assert (call["function"]["name"], json.loads(call["function"]["arguments"])) == ("edit", ARGUMENTS)
    assert not message.get("content")
    result = {"role": "tool", "tool_call_id": call["id"], "content": DONE}
    return [message, result], message.get("reasoning_content") or ""


def answer_anthropic(model: Model, messages: list[Any]) -> Turn:
    """Ask with Anthropic's API, and return the answer and the call's result as messages."""
    tools = [{"name": "edit", "description": EDIT["description"], "input_schema": SCHEMA}]
    answer = model.ask("/v1/messages", messages=messages, tools=tools, max_tokens=400)
    assert answer["stop_reason"] == "tool_use"
    *thoughts, call = answer["content"]
    assert (call["type"], call["name"], call["input"]) == ("tool_use", "edit", ARGUMENTS)
    assert [block["type"] for block in thoughts] in ([], ["thinking"])
    result = {"type": "tool_result", "tool_use_id": call["id"], "content": DONE}
    said = {"role": "assistant", "content": answer["content"]}
    return [said, {"role": "user", "content": [result]}], "".join(block["thinking"] for block in thoughts)


def answer_responses(model: Model, messages: list[Any]) -> Turn:
    """Ask with OpenAI's Responses API, and return the answer and the call's result as items."""
    tools = [{"type": "function", **EDIT}]
    answer = model.ask("/v1/responses", input=messages, tools=tools, max_output_tokens=400)
    *thoughts, call = answer["output"]
    assert (call["type"], call["name"], json.loads(call["arguments"])) == ("function_call", "edit", ARGUMENTS)
    assert [item["type"] for item in thoughts] in ([], ["reasoning"])
    result = {"type": "function_call_output", "call_id": call["call_id"], "output": DONE}
    return [*answer["output"], result], "".join(part["text"] for item in thoughts for part in item["content"])


def answer_ollama(model: Model, messages: list[Any]) -> Turn:
    """Ask with Ollama's API, which gives calls no ids, and return the answer and the call's result as messages."""
    tools = [{"type": "function", "function": EDIT}]
    message = model.ask("/api/chat", messages=messages, tools=tools, stream=False)["message"]
    (call,) = message["tool_calls"]
    assert (call["function"]["name"], call["function"]["arguments"]) == ("edit", ARGUMENTS)
    assert not message["content"]
    return [message, {"role": "tool", "tool_name": "edit", "content": DONE}], message.get("thinking", "")


SAMPLE = ("json_tools", "mistral", "kimi_k2", "harmony", "gemma4", "pythonic")
"""Families of different shapes."""
WITH_EACH_API = ("kimi_k2", "harmony")
"""Families that each commit tries with all APIs: one with ids of its own, and one whose calls are messages."""
EACH_COMMIT = {True: {*WITH_EACH_API, *tool_samples.SAMPLE}, False: WITH_EACH_API}
"""Families that each commit tries, by whether it is with OpenAI's API."""
OTHERS = (answer_anthropic, answer_responses, answer_ollama, answer_enforced)
# What a family's prompts show is the same for every API, once its messages have become those of the worker. Each commit
# tries two families of each parser: tests/tool_parsers/test_families.py reads the answers of all, without a server.
ROUND_TRIPS = [
    pytest.param(name, answer, marks=() if name in EACH_COMMIT[answer is answer_openai] else pytest.mark.nightly)
    for name in ALL_TURNS
    for answer in (answer_openai, *OTHERS)
]


@pytest.mark.parametrize(("name", "answer"), ROUND_TRIPS)
def test_each_prompt_continues_what_the_model_wrote(
    name: str, answer: Callable[[Model, list[Any]], Turn], models: Models
) -> None:
    turns = ALL_TURNS[name]
    model = models.model(
        f"{name} {answer.__name__}", turns, [turns.answer(thought) for thought in (*THOUGHTS, "Well.")]
    )
    messages: list[Any] = [{"role": "user", "content": ASKED}]
    for thought in THOUGHTS:
        more, reasoning = answer(model, messages)
        assert reasoning.strip() == (thought if turns.thought else "")
        messages += more
    answer(model, [*messages, {"role": "user", "content": LATER}])
    first, second, third = model.prompts
    assert first.endswith(turns.asked(ASKED) + turns.opening + turns.opens)
    start = first.removesuffix(turns.opening + turns.opens)
    assert second == start + turns.turn(THOUGHTS[0], DONE, is_kept=turns.kept != "never") + turns.again + turns.opens
    is_kept = turns.kept == "always"
    past = turns.turn(THOUGHTS[0], DONE, is_kept=is_kept) + turns.turn(THOUGHTS[1], DONE, is_kept=is_kept, again=True)
    assert third == start + past + turns.asked(LATER) + turns.opening + turns.opens


IN_MESSAGES = {*FAMILIES, "kimi_k3"}
"""Families whose text has a header or markers of its own."""
KEEPING = [
    name for name, turns in ALL_TURNS.items() if turns.thought and turns.kept != "never" and name not in IN_MESSAGES
]


@pytest.mark.parametrize("name", nightly_but(SAMPLE, KEEPING))
def test_text_between_reasoning_and_a_call_comes_back_without_more_white_space(name: str, models: Models) -> None:
    turns, said = ALL_TURNS[name], "I edit it."
    thought = turns.written(THOUGHTS[0], is_kept=True)
    model = models.model(f"{name} {said}", turns, [f"{thought}{said}{turns.call}".removeprefix(turns.opens), said])
    tools = [{"type": "function", "function": EDIT}]
    messages: list[Any] = [{"role": "user", "content": ASKED}]
    (choice,) = model.ask("/v1/chat/completions", messages=messages, tools=tools)["choices"]
    message = choice["message"]
    assert message["content"].strip() == said
    (call,) = message["tool_calls"]
    messages += [message, {"role": "tool", "tool_call_id": call["id"], "content": DONE}]
    model.ask("/v1/chat/completions", messages=messages, tools=tools)
    first, second = model.prompts
    past = f"{thought}{said}{turns.call}{turns.after_call(DONE)}"
    assert second == f"{first.removesuffix(turns.opens)}{past}{turns.again}{turns.opens}"
