"""The weight of a JSON text is found without decoding it, and follows its values, whatever its texts contain."""

import json
from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from lmwire_http.errors import ApiError
from lmwire_http.http import body as body_module
from lmwire_http.http.body import weigh
from lmwire_http.limits import JSON_DEPTH, JSON_WEIGHT
from lmwire_http.openai.messages import wire_arguments

TEXTS = ['a"b\\', '\\\\"', "x,[{", 'é":1.5e9', "\\", '"', ""]


def refusal(body: bytes) -> ApiError:
    with pytest.raises(ApiError) as failure:
        weigh(body)
    return failure.value


@pytest.mark.parametrize(
    ("body", "weight"),
    [
        (b"1", 0),
        (b'"a"', 8),
        (b"[1,2,3]", 8 + 2),
        (b'{"a":[],"b":{}}', 8 + 8 + 8 + 1 + 8 + 8),
        (b'["\\"[1,2]\\\\","{"]', 8 + 8 + 1 + 8),
        (b"[1.5]", 8 + 32),
        (b"[1e5,1E+5]", 8 + 1 + 512 + 512),
        (b"[" + b"9" * 64 + b"]", 8 + 2 * 512),
    ],
)
def test_the_weight_is_the_sum_of_the_values(body: bytes, weight: int) -> None:
    assert weigh(body) == weight


@pytest.mark.parametrize("piece_bytes", [64 * 1024, 2, 3, 7, 64])
def test_texts_are_told_from_values_wherever_the_body_is_cut(monkeypatch: pytest.MonkeyPatch, piece_bytes: int) -> None:
    monkeypatch.setattr(body_module, "_PIECE_BYTES", piece_bytes)
    random = Random(5)
    for _ in range(300):
        value = _random_value(random, 0)
        assert weigh(json.dumps(value, ensure_ascii=False).encode()) == _expected_weight(value)


@pytest.mark.parametrize(
    "make",
    [
        lambda: b'{"prompt":[' + b'"",' * 7_500_000 + b'""]}',
        lambda: b"[" + b"{}," * 500_000,
        lambda: b"[" + b"[]," * 500_000,
        lambda: b"[" + b"1," * (JSON_WEIGHT + 1),
        lambda: b"[" + b"1e308," * 5000,
        lambda: b"[" + b"0.5," * 100_000,
        lambda: b"1" * 1_000_000,
        lambda: b'"' * 1_000_000,
    ],
    ids=["texts", "objects", "lists", "numbers", "exponents", "decimals", "digits", "quotes"],
)
def test_a_body_that_takes_too_long_to_decode_is_refused(make: Callable[[], bytes]) -> None:
    assert (refusal(make()).status, refusal(make()).code) == (400, "too_many_values")


@pytest.mark.parametrize("bracket", [b"[", b'{"a":'])
def test_a_body_is_nested_as_deeply_as_its_limit(bracket: bytes) -> None:
    weigh(bracket * JSON_DEPTH)
    assert refusal(bracket * (JSON_DEPTH + 1)).code == "invalid_json"


def test_a_long_text_and_the_longest_prompt_are_no_more_than_allowed() -> None:
    weigh(b'{"messages":[{"role":"user","content":"' + b"one, two. [3]\\n" * 1_000_000 + b'"}]}')
    weigh(b'{"prompt":[' + b"12345," * (1024 * 1024 - 1) + b"1]}")


def test_arguments_within_a_text_are_weighed_as_well() -> None:
    usual = json.dumps({"lines": ["one, two"] * 10_000})
    assert wire_arguments(usual) == usual
    heavy = json.dumps({"numbers": [1e308] * 10_000})
    assert wire_arguments(heavy) == {"unreadable_arguments": heavy}


def _random_value(random: Random, depth: int) -> Any:
    kind = random.random()
    if depth > 4 or kind < 0.4:
        return random.choice([1, -20, True, None, *TEXTS])
    if kind < 0.7:
        return [_random_value(random, depth + 1) for _ in range(random.randint(0, 5))]
    return {f"{random.choice(TEXTS)}{n}": _random_value(random, depth + 1) for n in range(random.randint(0, 4))}


def _expected_weight(value: Any) -> int:
    if isinstance(value, str):
        return 8
    if isinstance(value, list):
        return 8 + max(0, len(value) - 1) + sum(map(_expected_weight, value))
    if isinstance(value, dict):
        return 8 + max(0, len(value) - 1) + sum(8 + _expected_weight(each) for each in value.values())
    return 0
