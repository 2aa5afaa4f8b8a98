"""Requests that real clients have sent, shortened, so that a change is noticed without the clients.

`LMWIRE_CAPTURE=tests/http/captured make test-all` adds the requests that tests/real_clients sends with other fields.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lmwire_http.http.unknown_fields import IGNORED_FIELDS_HEADER
from support.http.http_server import MOCK, Server, served
from support.http.raw_http import asked

FOLDER = Path(__file__).parent
REQUESTS = [
    pytest.param(request, id=f"{file.stem}-{number}{request['path'].partition('?')[0]}")
    for file in sorted(FOLDER.glob("*.json"))
    for number, request in enumerate(json.loads(file.read_text(encoding="utf-8")))
]
FORCED = ("Person", "PartialPerson", "final_result", "json", "json_tool_call")
"""Tools that the requests demand a call of."""
# The mock has no model that could be made to call a tool or to follow a format.
RULES = [
    {
        "match": {"fields": {"tool_choice": choice}, "has": has},
        "reply": {"tool_calls": [{"name": name, "arguments": {}}]},
    }
    for name in FORCED
    for choice in ({"name": name}, "required")
    for has in (["format"], [])
]
RULES += [{"match": {"has": ["format"]}, "reply": {"text": '{"name":"Ada","age":36}'}}]
# Without a reply of its own the mock repeats the prompt up to the limit, which is 128,000 tokens in some requests.
RULES += [{"reply": {"text": "Well."}}]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    scenario = tmp_path_factory.mktemp("captured") / "scenario.json"
    scenario.write_text(json.dumps({"rules": RULES}))
    with served("--worker", f"{MOCK} --scenario {scenario}") as server:
        yield server


@pytest.mark.parametrize("request_sent", REQUESTS)
def test_a_request_is_answered_and_ignores_what_it_ignored(server: Server, request_sent: dict[str, Any]) -> None:
    answer = asked(server.url, "POST", request_sent["path"], request_sent["body"], **request_sent["headers"])
    assert answer.status == 200, answer
    assert answer.headers.get(IGNORED_FIELDS_HEADER, "") == request_sent["ignored"]
