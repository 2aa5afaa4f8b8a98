"""Every bound of every field: a value just beyond it is refused, and the error names the path and the valid values."""

import json
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import pytest
from msgspec import inspect

from lmwire_protocol import COMMANDS, RequestError, decode_command, limits
from support.many_cases import for_each
from support.protocol.field_paths import paths, places, written

USER = {"role": "user", "content": "Hi"}
TOOL = {"type": "function", "function": {"name": "look", "description": "", "parameters": {}, "strict": True}}
CALL = {"id": "c", "name": "look", "arguments": {}}
MEDIA = [{"data": "aGk="}, {"path": "/a"}, {"url": "http://a"}]
PARTS = [
    {"type": "text", "text": "a"},
    *({"type": kind, "media": media} for kind in ("image", "audio") for media in MEDIA),
]
EMBEDDED = [part for part in PARTS if part["type"] != "audio"]
OPENAI_PARTS = [
    {"type": "image_url", "image_url": {"url": "http://a", "detail": "auto"}},
    {"type": "image_url", "image_url": "http://a"},
]
OPENAI_CALLS = [
    {"id": "c", "type": "function", "function": {"name": "look", "arguments": arguments}} for arguments in ({}, "{}")
]
FORMATS = [
    {"type": "json_object"},
    {"type": "json_schema", "schema": {}},
    {"type": "regex", "pattern": "a"},
    {"type": "lark", "grammar": "start: A"},
    {"type": "choice", "choices": ["a"]},
]
GENERATION = {
    "max_tokens": 1,
    "min_tokens": 0,
    "ignore_eos": False,
    "temperature": 1,
    "top_p": 1,
    "top_k": 1,
    "min_p": 0,
    "xtc_probability": 0,
    "xtc_threshold": 0,
    "repetition_penalty": 1,
    "presence_penalty": 0,
    "frequency_penalty": 0,
    "penalty_window": 0,
    "dry_multiplier": 0,
    "dry_base": 1,
    "dry_allowed_length": 0,
    "dry_range": 0,
    "dry_sequence_breakers": ["a"],
    "banned_strings": ["a"],
    "logit_bias": {"5": 1},
    "seed": 1,
    "stop": ["a"],
    "include_stop": False,
    "logprobs": True,
    "top_logprobs": 0,
    "n": 1,
    "truncate": "none",
    "cache": "on",
    "cache_report": True,
    "timeout_ms": 1,
}
TEMPLATE = {
    "tools": [TOOL],
    "chat_template": "",
    "template_args": {},
    "add_generation_prompt": True,
    "continue_final_message": False,
    "prefix": "",
    "reasoning": "auto",
    "reasoning_effort": "low",
}
CHAT = {
    **TEMPLATE,
    "parallel_tool_calls": True,
    "reasoning_budget": 0,
    "strict_media": False,
}
MESSAGES = [
    {"role": "user", "content": PARTS},
    {"role": "assistant", "reasoning": "a", "tool_calls": [CALL]},
    {"role": "assistant", "content": "a", "tool_calls": [{**CALL, "arguments": "{}"}]},
    {"role": "tool", "content": "a", "tool_call_id": "c", "name": "look"},
    {"role": "user", "content": OPENAI_PARTS},
    {"role": "assistant", "tool_calls": OPENAI_CALLS},
]
BASES: dict[str, list[dict[str, Any]]] = {
    "hello": [{"protocol": [1, 1], "client": "a", "host_pid": 1}],
    "load": [
        {
            "path": "a",
            "trust_remote_code": False,
            "adapter_path": "a",
            "draft_path": "a",
            "chat_template_name": "a",
            "tool_format": "a",
            "context_len": 1,
            "kv_bits": 4,
            "dtype": "float32",
            "force": False,
            "reasoning_start": "a",
            "reasoning_end": "a",
            "generation_config": False,
        }
    ],
    "unload": [{}],
    "generate": [
        *({"prompt": "a", **GENERATION, "format": form} for form in FORMATS),
        {"prompt": [1], **GENERATION},
        {"prompt": "a", "prompt_logprobs": True, "suffix": "b", "context_files": [{"name": "a.py", "text": "b"}]},
        {"prompt": "a", **GENERATION, "stop": "a"},
    ],
    "chat": [
        {"messages": MESSAGES, **GENERATION, **CHAT, "tool_choice": "auto"},
        *({"messages": MESSAGES, **CHAT, "format": form, "tool_choice": {"name": "look"}} for form in FORMATS),
        {
            "messages": MESSAGES,
            **CHAT,
            "stop": "a",
            "tool_choice": {"type": "function", "function": {"name": "look"}},
        },
    ],
    "tokenize": [
        {"prompt": "a", "count_only": True, "add_special_tokens": False},
        {"messages": MESSAGES, **TEMPLATE},
        {"token_ids": [1]},
    ],
    "embed": [
        {
            "input": ["a", *EMBEDDED, {"type": "tokens", "token_ids": [1]}],
            "normalize": True,
            "dimensions": 1,
            "encoding": "float",
        },
    ],
    "transcribe": [
        {"audio": media, "language": "en", "prompt": "a", "temperature": 0, "words": True, "timeout_ms": 1}
        for media in MEDIA
    ],
    "speak": [
        {
            "text": "a",
            "voice": "a",
            "language": "a",
            "instructions": "a",
            "speed": 1,
            "max_seconds": 1,
            "seed": 1,
            "timeout_ms": 1,
        }
    ],
    "cache": [{"action": "clear"}],
    "info": [{}],
    "cancel": [{"target": "a"}, {"all": True}],
    "ping": [{}],
    "stats": [{}],
    "quit": [{"drain": True}],
}
"""Valid lines without their envelopes. Together they have every field at every depth."""


def replaced(value: Any, place: tuple[Any, ...], new: Any) -> Any:
    """Return a copy of a value with another value at a place."""
    value = deepcopy(value)
    *above, last = place
    inner = value
    for step in above:
        inner = inner[step]
    inner[last] = new
    return value


def beyond(kind: Any, current: Any) -> Iterator[tuple[Any, list[str]]]:
    """Yield values just beyond a type's bounds, and the words of the error for each. `held` is a valid value."""
    if isinstance(kind, inspect.Metadata):
        limit = (kind.extra_json_schema or {})["maxLength"]
        yield "é" * (limit // 2) + "a", [f"{limit:,} bytes"]
        yield from beyond(kind.type, current)
        return
    if isinstance(kind, inspect.IntType | inspect.FloatType):
        step = 1 if isinstance(kind, inspect.IntType) else 1e-6
        low, high = [number(bound) for bound in (kind.ge if kind.gt is None else kind.gt, kind.le)]
        if kind.ge is not None:
            yield kind.ge - step, [low, high]
        if kind.gt is not None:
            yield kind.gt, [low, high]
        if kind.le is not None:
            yield kind.le + step, [low, high]
    elif isinstance(kind, inspect.StrType | inspect.ListType | inspect.DictType):
        if kind.min_length:
            yield type(current)(), [f"{kind.min_length}"]
        if kind.max_length is not None:
            yield longer(current, kind.max_length + 1), [f"{kind.max_length:,}"]
    elif isinstance(kind, inspect.TupleType):
        yield [*current, current[0]], [f"{len(kind.item_types)} items"]
        yield current[1:], [f"{len(kind.item_types)} items"]
    elif isinstance(kind, inspect.LiteralType):
        yield "no such value", [json.dumps(value) for value in kind.values]


def longer(current: Any, size: int) -> Any:
    if isinstance(current, str):
        return "a" * size
    return {str(key): 1 for key in range(size)} if isinstance(current, dict) else [current[0]] * size


def number(bound: Any) -> str:
    return "2^53-1" if bound == limits.MAX_INT else f"{bound:,g}"


SIZED: dict[type, type] = {inspect.StrType: str, inspect.ListType: list, inspect.DictType: dict}


Bound = tuple[str, dict[str, Any], str, list[str]]


def bounds() -> dict[str, Bound]:
    """Return (command, line, path, words of the error) for each bound of each path, by a name."""
    found: dict[str, Bound] = {}
    for name, command in COMMANDS.items():
        for path, kind in paths(inspect.type_info(command)):
            sized = SIZED.get(type(kind.type if isinstance(kind, inspect.Metadata) else kind), object)
            held_here = [
                (base, place, current)
                for base in BASES[name]
                for place, current in places(base, path)
                if isinstance(current, sized)
            ]
            base, place, current = held_here[0]
            for value, words in beyond(kind, current):
                test = f"{name} {written(place)}: {value!r:.20} for {' '.join(words)}"
                found[test] = name, replaced(base, place, value), written(place), words
    return found


@for_each(lambda: bounds().items(), lambda named: named[0])
def test_a_value_beyond_a_bound_is_refused_with_its_path_and_the_valid_values(named: tuple[str, Bound]) -> None:
    name, fields, path, allowed = named[1]
    with pytest.raises(RequestError) as caught:
        decode_command({"cmd": name, **fields})
    assert (caught.value.code, caught.value.field) == ("invalid_request", path)
    assert f"`{path}`" in caught.value.message
    assert [words for words in allowed if words not in caught.value.message] == []


@pytest.mark.parametrize("name", COMMANDS)
def test_the_lines_for_the_bounds_are_valid_and_have_every_field(name: str) -> None:
    for base in BASES[name]:
        decode_command({"cmd": name, **base})
    for path, _ in paths(inspect.type_info(COMMANDS[name])):
        assert any(list(places(base, path)) for base in BASES[name]), path
