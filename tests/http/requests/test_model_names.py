"""The name of the model in a request: it may be absent or any other where one model is served."""

from typing import Any, Final

import pytest

from support.http.http_server import MOCK, Server, served
from support.http.raw_http import CHAT, Answer, asked

pytestmark = pytest.mark.slow

TINY: Final = "builtin:tiny"
USER: Final = {"role": "user", "content": "Who are you?"}
BODIES: Final[dict[str, Any]] = {
    CHAT: {"messages": [USER], "max_tokens": 1},
    "/v1/completions": {"prompt": "I", "max_tokens": 1},
    "/v1/responses": {"input": "Who are you?", "max_output_tokens": 1},
    "/v1/messages": {"messages": [USER], "max_tokens": 1},
}


def ask(server: Server, path: str, **fields: Any) -> Answer:
    return asked(server.url, "POST", path, {**BODIES[path], **fields})


@pytest.mark.parametrize("path", BODIES)
def test_the_model_may_be_absent_if_one_model_is_served(tiny_server: Server, path: str) -> None:
    answer = ask(tiny_server, path)
    assert (answer.status, answer.json["model"]) == (200, TINY)


@pytest.mark.parametrize("path", BODIES)
def test_the_model_may_be_default_or_null_if_one_model_is_served(tiny_server: Server, path: str) -> None:
    for name in ("default", "default_model", "chat_model", None):
        assert ask(tiny_server, path, model=name).status == 200


def test_any_other_name_is_not_found(tiny_server: Server) -> None:
    answer = ask(tiny_server, CHAT, model="gpt-4o")
    assert (answer.status, answer.json["error"]["param"]) == (404, "model")


def test_the_model_is_required_if_several_models_are_served() -> None:
    with served("one", "two", "--worker", MOCK) as server:
        missing, default = ask(server, CHAT), ask(server, CHAT, model="default")
        assert (missing.status, missing.json["error"]["param"]) == (400, "model")
        assert "there are one, two" in missing.json["error"]["message"]
        assert default.status == 404


def test_any_name_stands_for_the_one_model_if_allowed() -> None:
    with served(TINY, "--any-model-name") as server:
        answer = ask(server, CHAT, model="gpt-4o")
        assert (answer.status, answer.json["model"]) == (200, "gpt-4o")
        assert asked(server.url, "GET", "/v1/models/claude-sonnet").json["id"] == TINY
        assert server.figure("lmwire_http_requests_total", model=TINY, path=CHAT) == 1


@pytest.mark.parametrize(
    "path",
    [
        "/chat/completions",
        "/v1/chat/completions/",
        "/v1/v1/chat/completions",
        "//v1//chat/completions",
        "/v1//chat/completions//",
    ],
)
def test_a_path_may_differ_in_its_version_and_slashes(tiny_server: Server, path: str) -> None:
    assert asked(tiny_server.url, "POST", path, BODIES[CHAT]).status == 200


@pytest.mark.parametrize(("path", "models", "id"), [("/v1/models", "data", "id"), ("/api/tags", "models", "name")])
def test_lists_begin_with_the_models_that_the_operator_names_in_that_order(path: str, models: str, id: str) -> None:
    names = ["tests/mock-7b", "mock", "mock:step_ms=1"]
    with served(*names, "--worker", MOCK) as server:
        assert ask(server, CHAT, model="mock:step_ms=1").status == 200  # it is in memory now
        assert [each[id] for each in asked(server.url, "GET", path).json[models]] == names


@pytest.mark.parametrize("path", ["/models", "/models/", "/v1/models/builtin:tiny/", "/health/", "/v1/v1/models"])
def test_every_path_may_have_v1_or_not_and_extra_slashes(tiny_server: Server, path: str) -> None:
    assert asked(tiny_server.url, "GET", path).status == 200


def test_errors_have_the_format_of_the_path_that_was_meant(tiny_server: Server) -> None:
    assert asked(tiny_server.url, "POST", "/messages", {}).json["type"] == "error"
    assert asked(tiny_server.url, "GET", "/v1/nothing/").status == 404
