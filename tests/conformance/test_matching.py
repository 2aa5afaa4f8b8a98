"""The patterns of transcripts."""

from typing import Any

import pytest

from lmwire_conformance.worker.matching import matches

LINE: dict[str, Any] = {"id": "a", "n": 3, "x": 1.5, "ok": True, "list": [1, 2], "in": {"deep": "text"}}
SAID: dict[str, Any] = {
    "g": {"n": 3, "in": {"deep": "text"}, "list": [9, 2]},
    "other": {"n": 4, "in": {"deep": "another"}},
}


@pytest.mark.parametrize(
    "pattern",
    [
        {},
        {"id": "a"},
        {"n": 3, "missing": None},
        {"in": {"deep": "text"}},
        {"list": [1, 2]},
        {"list": [{"$type": "integer"}, 2]},
        {"id": {"$type": "string"}, "n": {"$type": "integer"}, "x": {"$type": "number"}, "ok": {"$type": "boolean"}},
        {"list": {"$type": "list"}, "in": {"$type": "object"}},
        {"n": {"$range": [3, 3]}, "x": {"$range": [None, 2]}},
        {"in": {"deep": {"$regex": "ex"}}},
        {"n": {"$same": "g"}, "in": {"deep": {"$same": "g"}}, "missing": {"$same": "g"}},
        {"list": [1, {"$same": "g"}]},
        {"n": {"$same": ["g", "n"]}, "list": [{"$not": {"$same": ["g", "list", 0]}}, {"$same": ["g", "list", 1]}]},
        {"n": {"$not": 4}, "id": {"$or": ["b", "a"]}, "missing": {"$or": [None, 1]}},
        {"list": {"$each": {"$range": [1, 2]}}},
        {"list": {"$has": 2}},
    ],
)
def test_it_matches(pattern: dict[str, Any]) -> None:
    assert matches(pattern, LINE, SAID)


@pytest.mark.parametrize(
    "pattern",
    [
        {"id": "b"},
        {"n": None},
        {"n": 3.0},
        {"ok": 1},
        {"missing": {}},
        {"in": {"deep": "text", "more": 1}},
        {"list": [1]},
        {"list": [2, 1]},
        {"n": {"$type": "string"}},
        {"ok": {"$type": "integer"}},
        {"x": {"$type": "integer"}},
        {"missing": {"$type": "string"}},
        {"n": {"$range": [4, None]}},
        {"id": {"$range": [None, None]}},
        {"ok": {"$range": [0, 1]}},
        {"id": {"$regex": "b"}},
        {"n": {"$regex": "3"}},
        {"n": {"$same": "other"}},
        {"n": {"$same": ["g", "list", 0]}},
        {"in": {"deep": {"$same": "other"}}},
        {"n": {"$not": 3}},
        {"id": {"$or": ["b", "c"]}},
        {"list": {"$each": 1}},
        {"n": {"$each": 3}},
        {"list": {"$has": 3}},
    ],
)
def test_it_does_not_match(pattern: dict[str, Any]) -> None:
    assert not matches(pattern, LINE, SAID)
