"""Each list and each map of each request has a limit, and one item more is refused with the field's name."""

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from msgspec import inspect

from lmwire_http.app import ENDPOINTS
from lmwire_http.errors import ApiError
from lmwire_http.http.decoding import convert
from lmwire_http.http.unknown_fields import UnknownFields
from lmwire_http.limits import UNKNOWN_FIELDS
from lmwire_http.openai.chat.request import ChatRequest
from lmwire_http.openai.completions.request import CompletionRequest, prompts_of
from lmwire_http.openai.responses.items import InputField
from lmwire_http.openai.responses.tools import ChoiceField, ToolsField
from lmwire_protocol import COMMANDS
from support.http.samples import sample
from support.many_cases import for_each

CONVERTED = (InputField, ToolsField, ChoiceField)
"""Types to which plain data within a request is converted: items and tools of /v1/responses."""
REQUESTS = [
    *{endpoint.request_type: None for endpoint in ENDPOINTS if endpoint.request_type is not None},
    *CONVERTED,
]
Step = tuple[inspect.Type, str]
"""A type, and the name of the field in it; empty for an item."""


def collections(kind: inspect.Type, above: tuple[Step, ...] = ()) -> Iterator[tuple[Any, tuple[Step, ...]]]:
    """Yield each list and map below a type, with the steps that lead to it."""
    match kind:
        case inspect.Metadata(type=inner):
            yield from collections(inner, above)
        case inspect.UnionType(types=types):
            for each in types:
                yield from collections(each, above)
        case inspect.StructType(fields=fields):
            if all(each != kind for each, _ in above):  # a type within itself needs no second visit
                for field in fields:
                    yield from collections(field.type, (*above, (kind, field.encode_name)))
        case inspect.ListType(item_type=inner) | inspect.DictType(value_type=inner):
            yield kind, above
            yield from collections(inner, (*above, (kind, "")))
        case inspect.VarTupleType() | inspect.SetType() | inspect.FrozenSetType():
            pytest.fail(f"{kind} is no type that a limit was thought of for")
        case _:
            pass


def wrapped(value: Any, steps: tuple[Step, ...]) -> tuple[Any, str]:
    """Return a request in which a value is at a place, and the path of that place."""
    path = ""
    for kind, name in reversed(steps):
        if isinstance(kind, inspect.StructType):
            value = {**sample(kind), name: value}
            path = f"{name}{'' if path.startswith('[') or not path else '.'}{path}"
        else:
            value, path = ([value], f"[0]{'.' if path and not path.startswith('[') else ''}{path}")
    return value, path


Found = tuple[Any, Any, tuple[Step, ...]]
FOUND: list[Found] = [
    (request, kind, steps) for request in REQUESTS for kind, steps in collections(inspect.type_info(request))
]


def named(found: Found) -> str:
    request, kind, steps = found
    return f"{request.__name__}: {wrapped(None, steps)[1]} {type(kind).__name__}"


@for_each(FOUND, named)
def test_one_item_more_than_the_limit_is_refused_with_the_field(found: Found) -> None:
    request_type, kind, steps = found
    assert kind.max_length is not None
    is_list = isinstance(kind, inspect.ListType)
    item = sample(kind.item_type if is_list else kind.value_type)
    for count, is_accepted in ((kind.max_length, True), (kind.max_length + 1, False)):
        value: Any = [item] * count if is_list else {str(key): item for key in range(count)}
        body, path = wrapped(value, steps)
        if is_accepted:
            convert(body, request_type, UnknownFields({}))
            continue
        for unknown in ({}, {"unknown": 1}):
            with pytest.raises(ApiError) as failure:
                convert({**unknown, **body}, request_type, UnknownFields({}))
            assert (failure.value.status, failure.value.param) == (400, path)
            assert f"{kind.max_length:,}" in failure.value.message


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_each_list_and_map_of_a_command_has_a_limit(command: Any) -> None:
    unlimited = [
        wrapped(None, steps)[1] for kind, steps in collections(inspect.type_info(command)) if kind.max_length is None
    ]
    assert unlimited == []


def _completion(prompt: Any) -> CompletionRequest:
    return CompletionRequest(prompt=prompt)


def test_a_completion_may_have_fewer_prompts_than_tokens() -> None:
    assert len(prompts_of(_completion([1] * 1025))[0]) == 1025
    for prompts in (["a"] * 1025, [[1]] * 1025):
        with pytest.raises(ApiError, match="prompt: has more than 1,024 prompts"):
            prompts_of(_completion(prompts))


def test_an_object_has_a_limited_number_of_unknown_fields() -> None:
    message = {"role": "user", "content": "Hi", **{f"x{number}": 1 for number in range(UNKNOWN_FIELDS)}}
    with pytest.raises(ApiError) as failure:
        convert(msgspec.json.decode(msgspec.json.encode({"messages": [message]})), ChatRequest, UnknownFields({}))
    assert (failure.value.status, failure.value.param) == (400, "messages[0]")


@pytest.mark.parametrize(
    "body",
    [
        {"messages": [{"role": " - at `$" * 1_000_000, "content": "Hi"}]},
        {"messages": [{"role": "user", "content": "Hi"}], "unknown" * 1_000_000: 1},
        {"messages": [{"role": "user", "content": "Hi"}], "verbosity": "é" * 1_000_000},
    ],
)
def test_an_error_quotes_a_part_of_a_long_text(body: dict[str, Any]) -> None:
    with pytest.raises(ApiError) as failure:
        convert(body, ChatRequest, UnknownFields({}, strict=True))
    assert failure.value.status == 400
    assert 20 < len(failure.value.message) < 5000
    assert len(failure.value.param or "") < 5000
