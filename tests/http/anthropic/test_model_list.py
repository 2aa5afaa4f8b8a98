"""The models in Anthropic's format, for requests with `anthropic-version`, and errors in that format."""

from collections.abc import Iterator
from typing import Any

import pytest

from support.http.anthropic_http import client
from support.http.http_server import MOCK, Server, served
from support.http.raw_http import Answer, asked

VERSION = {"anthropic_version": "2023-06-01"}


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with served("one", "two", "three", "--worker", MOCK) as server:
        yield server


def get(server: Server, path: str, method: str = "GET", **headers: str) -> Answer:
    return asked(server.url, method, path, **headers)


@pytest.mark.slow
def test_the_models_have_anthropics_format_for_its_clients(server: Server) -> None:
    page = get(server, "/v1/models", **VERSION).json
    assert [model["id"] for model in page["data"]] == ["one", "two", "three"]
    assert (page["has_more"], page["first_id"], page["last_id"]) == (False, "one", "three")
    assert page["data"][0] | {"id": "one", "type": "model", "display_name": "one"} == page["data"][0]
    assert "T00:00:00Z" in page["data"][0]["created_at"]


def test_other_clients_receive_openais_format(server: Server) -> None:
    assert get(server, "/v1/models").json["object"] == "list"
    assert get(server, "/v1/models/one").json["object"] == "model"


def test_anthropics_client_reads_the_list_page_by_page(server: Server) -> None:
    models = client(server).models
    assert [model.id for model in models.list(limit=1)] == ["one", "two", "three"]
    assert [model.id for model in models.list(after_id="one", limit=1).data] == ["two"]
    before = models.list(before_id="three", limit=1)
    assert ([model.id for model in before.data], before.has_more) == (["two"], True)
    assert models.retrieve("two").display_name == "two"


@pytest.mark.slow
def test_a_model_tells_its_context(tiny_server: Server) -> None:
    model: Any = get(tiny_server, "/v1/models/builtin:tiny", **VERSION).json
    assert model["max_input_tokens"] > 0
    assert model["lifecycle"] == "active", "newer clients require it"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("path", "status", "named"),
    [
        ("/v1/models?limit=0", 400, "limit"),
        ("/v1/models?limit=1001", 400, "limit"),
        ("/v1/models?limit=" + "9" * 100, 400, "limit"),
        ("/v1/models?after_id=four", 400, "after_id"),
        ("/v1/models/four/five", 404, ""),
        ("/v1/nothing", 404, ""),
    ],
)
def test_errors_have_anthropics_format_too(tiny_server: Server, path: str, status: int, named: str) -> None:
    answer = get(tiny_server, path, **VERSION)
    assert (answer.status, answer.json["type"]) == (status, "error")
    assert answer.json["error"]["message"].startswith(named)
    assert answer.headers["request-id"] == answer.json["request_id"]


def test_a_wrong_method_is_answered_in_anthropics_format(server: Server) -> None:
    answer = get(server, "/v1/models", "DELETE", **VERSION)
    assert (answer.status, answer.headers["allow"], answer.json["type"]) == (405, "GET, HEAD", "error")
    assert get(server, "/v1/models", "DELETE").json["error"]["code"] == "method_not_allowed"


@pytest.mark.parametrize("path", ["/v1/messages", "/messages", "/v1/v1/messages/count_tokens", "/messages/"])
def test_a_foreign_page_is_refused_in_anthropics_format(server: Server, path: str) -> None:
    answer = get(server, path, "POST", origin="https://example.com")
    assert (answer.status, answer.json["type"]) == (403, "error")


def test_a_client_without_a_key_sees_whether_the_server_is_there() -> None:
    with served("--worker", MOCK, "--api-key", "secret") as server:
        assert get(server, "/", "HEAD").status == 200
        for method in ("GET", "HEAD"):
            answer = get(server, "/api/hello", method)
            assert (answer.status, answer.headers["x-request-id"]) == (200, answer.headers["request-id"])
