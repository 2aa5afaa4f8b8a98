"""What the tests of Anthropic's API share: a script for the mock worker, and clients that do not try again."""

import json
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import anthropic

from http_server import MOCK, Server, served

MODEL: Final = "mock"
WEATHER: Final[Any] = {
    "name": "weather",
    "description": "The weather now.",
    "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}
_ROME: Final = {"name": "weather", "arguments": {"city": "Rome"}, "id": "call_rome"}
_OSLO: Final = {"name": "weather", "arguments": {"city": "Oslo"}, "id": "call_oslo"}
_RULES: Final[list[Any]] = [
    {
        "match": {"last_message": "weather in Rome", "has": ["tools"]},
        "reply": {"reasoning": "I look it up.", "text": "One moment.", "tool_calls": [_ROME]},
    },
    {"match": {"last_message": "weather everywhere"}, "reply": {"tool_calls": [_ROME, _OSLO]}},
    {
        "match": {"last_message": "weather broken"},
        "reply": {"text": "Well:", "tool_calls": [{"name": "weather", "arguments": "{city"}]},
    },
    {"match": {"last_message": "think aloud"}, "reply": {"reasoning": "2 and 2.", "text": "It is 4."}},
    {"match": {"last_message": "blanks"}, "reply": {"tokens": ["\n", "\n"], "tool_calls": [_ROME]}},
    {"match": {"last_message": "who is Ada", "has": ["format"]}, "reply": {"text": '{"name":"Ada","born":1815}'}},
    {"match": {"last_message": "go on and on"}, "reply": {"text": "On and on.", "finish_reason": "length"}},
    {"match": {"last_message": "no memory"}, "reply": {"text": "I had", "finish_reason": "capacity"}},
    {"match": {"last_message": "wait"}, "reply": {"text": "I", "then": "wait"}},
    {"match": {"last_message": "busy"}, "reply": {"error": {"code": "busy"}}},
    {"match": {"last_message": "breaks at once"}, "reply": {"error": {"code": "engine_error"}}},
    {"match": {"last_message": "breaks later"}, "reply": {"text": "Half", "error": {"code": "engine_error"}}},
]


def _rule(fields: dict[str, Any], reply: Any) -> dict[str, Any]:
    """A rule that replies so to requests whose fields are these: it shows what the worker was told."""
    return {"match": {"last_message": "options", "fields": fields}, "reply": reply}


def _told(word: str) -> Any:
    return {"tool_calls": [{"name": "weather", "arguments": {"city": word}}]}


_OPTIONS: Final = [
    _rule({"reasoning": "on", "reasoning_budget": 2000}, {"text": "on, 2000"}),
    _rule({"reasoning": "off"}, {"text": "off"}),
    _rule({"tool_choice": "required", "parallel_tool_calls": False}, _told("required, one")),
    _rule({"tool_choice": "required"}, _told("required")),
    _rule({"tool_choice": {"name": "weather"}}, _told("by name")),
    _rule({"parallel_tool_calls": False}, _told("one")),
    _rule({"temperature": 0.5, "top_p": 0.9, "top_k": 20, "seed": 7, "min_p": 0.1}, {"text": "sampled"}),
    _rule({"temperature": 1.0, "reasoning": "auto", "tool_choice": "auto"}, {"text": "defaults"}),
]


@contextmanager
def scripted(folder: Path) -> Iterator[Server]:
    """A server of the mock worker that plays the script."""
    scenario = folder / "scenario.json"
    scenario.write_text(json.dumps({"rules": [*_RULES, *_OPTIONS]}))
    with served("--worker", f"{MOCK} --scenario {shlex.quote(str(scenario))}") as server:
        yield server


def client(server: Server, **options: Any) -> anthropic.Anthropic:
    """A client of the server's."""
    return anthropic.Anthropic(base_url=server.url, api_key="any", max_retries=0, **options)


def async_client(server: Server) -> anthropic.AsyncAnthropic:
    """The same for tasks."""
    return anthropic.AsyncAnthropic(base_url=server.url, api_key="any", max_retries=0)


def user(content: Any) -> Any:
    """A message."""
    return {"role": "user", "content": content}
