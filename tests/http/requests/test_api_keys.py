"""Access to the server: by API key where one is needed, and for web pages of allowed origins."""

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import anthropic
import openai
import pytest

import support
from lmwire_http.errors import ApiError
from lmwire_http.http.api_keys import InvalidApiKeys, find_api_key, read_api_keys
from support.http.http_server import MOCK, Server, served, served_process
from support.http.raw_http import CHAT, Answer, asked, chat_body

KEY, OTHER = "k-ada", "k-alan"
PAGE = "http://localhost:3000"
OPEN = ["/health", "/ready", "/openapi.json"]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    keys = tmp_path_factory.mktemp("keys") / "keys"
    keys.write_text(f"{KEY}\n{OTHER}\n")
    with served("--api-key-file", str(keys), "--cors", PAGE, "--worker", MOCK) as server:
        yield server


def chat(url: str, **headers: str) -> Answer:
    return asked(url, "POST", CHAT, chat_body("hello"), **headers)


@pytest.mark.parametrize("key", [KEY, OTHER])
@pytest.mark.parametrize("scheme", ["Bearer", "bearer"])
def test_any_key_is_accepted_as_a_bearer_token(server: Server, key: str, scheme: str) -> None:
    assert chat(server.url, authorization=f"{scheme} {key}").status == 200


def test_any_key_is_accepted_as_x_api_key(server: Server) -> None:
    assert chat(server.url, x_api_key=KEY).status == 200


def test_one_valid_key_of_two_headers_is_enough(server: Server) -> None:
    assert chat(server.url, x_api_key="another's", authorization=f"Bearer {KEY}").status == 200


@pytest.mark.parametrize(
    ("headers", "words"),
    [
        ({}, "an API key is needed: Authorization: Bearer KEY"),
        ({"authorization": f"Basic {KEY}"}, "an API key is needed"),
        ({"authorization": KEY}, "an API key is needed"),
        ({"authorization": "Bearer k-ad"}, "this API key is not valid here"),
        ({"authorization": "Bearer k-adaa"}, "not valid here"),
        ({"x_api_key": "k-é"}, "not valid here"),
    ],
)
def test_without_a_valid_key_nothing_is_served(server: Server, headers: dict[str, str], words: str) -> None:
    answer = chat(server.url, **headers)
    assert (answer.status, answer.headers["www-authenticate"]) == (401, "Bearer")
    assert words in answer.json["error"]["message"]
    assert (answer.json["error"]["type"], answer.json["error"]["code"]) == ("authentication_error", "invalid_api_key")


def test_a_key_is_asked_for_before_the_body_is_read(server: Server) -> None:
    assert asked(server.url, "POST", CHAT, b"{").status == 401


@pytest.mark.parametrize("path", OPEN)
def test_health_ready_and_openapi_need_no_key(server: Server, path: str) -> None:
    assert asked(server.url, "GET", path).status == 200


@pytest.mark.parametrize("path", ["/metrics", "/v1/models"])
def test_metrics_and_models_need_a_key(server: Server, path: str) -> None:
    assert asked(server.url, "GET", path).status == 401
    assert asked(server.url, "GET", path, authorization=f"Bearer {KEY}").status == 200


def test_openais_client_has_it_as_its_api_key(server: Server) -> None:
    messages = [{"role": "user", "content": "hello"}]
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key=KEY) as client:
        assert client.chat.completions.create(model="mock", messages=messages).choices  # type: ignore[arg-type]
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="x") as client, pytest.raises(openai.AuthenticationError):
        client.chat.completions.create(model="mock", messages=messages)  # type: ignore[arg-type]


def test_anthropics_client_has_it_as_its_api_key(server: Server) -> None:
    messages: list[anthropic.types.MessageParam] = [{"role": "user", "content": "hello"}]
    with anthropic.Anthropic(base_url=server.url, api_key=KEY) as client:
        assert client.messages.create(model="mock", messages=messages, max_tokens=9).content
    with (
        anthropic.Anthropic(base_url=server.url, api_key="x") as client,
        pytest.raises(anthropic.AuthenticationError),
    ):
        client.messages.create(model="mock", messages=messages, max_tokens=9)


def test_every_key_is_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the search ended at the first match, its time would reveal the position of a key."""
    compared: list[bytes] = []

    def compare(given: bytes, key: bytes) -> bool:
        compared.append(key)
        return given == key

    monkeypatch.setattr("hmac.compare_digest", compare)
    assert find_api_key({"x-api-key": "a"}, ["a", "b", "c"]) == 0
    with pytest.raises(ApiError):
        find_api_key({"x-api-key": "d"}, ["a", "b", "c"])
    assert compared == [b"a", b"b", b"c"] * 2


def test_a_log_has_no_key(server: Server) -> None:
    chat(server.url, authorization=f"Bearer {KEY}", x_request_id="looked-for")
    chat(server.url, authorization="Bearer k-unknown", x_request_id="looked-for-too")
    server.wait_for_line("looked-for-too")
    log = "".join(server.log)
    assert not [key for key in (KEY, OTHER, "k-unknown") if key in log]


# Pages.


def preflight(url: str, page: str) -> Answer:
    return asked(
        url,
        "OPTIONS",
        CHAT,
        origin=page,
        access_control_request_method="POST",
        access_control_request_headers="authorization,content-type,x-stainless-lang",
    )


@pytest.mark.slow
def test_a_preflight_allows_a_named_origin_to_send_a_key(server: Server) -> None:
    answer = preflight(server.url, PAGE)
    assert (answer.status, answer.headers["access-control-allow-origin"]) == (200, PAGE)
    allowed = {name.strip().lower() for name in answer.headers["access-control-allow-headers"].split(",")}
    assert {"authorization", "content-type", "x-stainless-lang"} <= allowed
    assert "POST" in answer.headers["access-control-allow-methods"]


def test_an_allowed_page_reads_the_answer_and_the_request_id(server: Server) -> None:
    answer = chat(server.url, origin=PAGE, authorization=f"Bearer {KEY}")
    assert (answer.status, answer.headers["access-control-allow-origin"]) == (200, PAGE)
    assert "x-request-id" in answer.headers["access-control-expose-headers"].lower()


def test_an_allowed_page_reads_the_error_for_a_missing_key(server: Server) -> None:
    answer = chat(server.url, origin=PAGE)
    assert (answer.status, answer.headers["access-control-allow-origin"]) == (401, PAGE)


@pytest.mark.slow
def test_a_page_that_is_not_allowed_reads_nothing(server: Server) -> None:
    assert preflight(server.url, "http://evil.example").status == 400
    answer = chat(server.url, origin="http://evil.example", authorization=f"Bearer {KEY}")
    assert "access-control-allow-origin" not in answer.headers


@pytest.mark.slow
def test_by_default_no_page_of_another_origin_reads_an_answer(mock_server: Server) -> None:
    assert "access-control-allow-origin" not in preflight(mock_server.url, PAGE).headers


@pytest.mark.slow
@pytest.mark.parametrize("page", [PAGE, "http://evil.example", "null"])
def test_without_keys_a_page_that_was_not_named_has_nothing_done_either(mock_server: Server, page: str) -> None:
    """A browser lets any page post a plain text to 127.0.0.1: the answer it cannot read, but the model would work."""
    answer = chat(mock_server.url, origin=page, content_type="text/plain")
    assert (answer.status, answer.json["error"]["code"]) == (403, "origin_not_allowed")
    assert f"--cors {page}" in answer.json["error"]["message"]


def test_without_keys_a_page_that_was_named_is_served(tmp_path: Path) -> None:
    with served("--cors", PAGE, "--worker", MOCK) as server:
        assert chat(server.url, origin=PAGE).status == 200
        assert chat(server.url, origin="http://evil.example").status == 403


# Files of keys, and where a key must not appear.


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    file = tmp_path / "keys"
    file.write_text(f"{KEY}\n")
    file.chmod(0o600)
    return file


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o602])
def test_a_file_of_keys_that_others_can_read_is_warned_of_at_the_start(keys: Path, mode: int) -> None:
    keys.chmod(mode)
    with served("--api-key-file", str(keys), "--worker", MOCK) as server:
        line = server.wait_for_line("other users can read or change")
        assert asked(server.url, "GET", "/health").status == 200
    assert f"chmod 600 {keys}" in line
    assert " warning " in line


def test_a_key_file_that_only_its_owner_can_read_logs_no_warning(keys: Path) -> None:
    with served("--api-key-file", str(keys), "--worker", MOCK) as server:
        assert asked(server.url, "GET", "/health").status == 200
        assert not any(" warning " in line for line in server.log)


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir], ids=["fifo", "folder"])
def test_a_key_file_that_is_not_a_regular_file_is_refused(tmp_path: Path, make: Callable[[Path], None]) -> None:
    make(tmp_path / "keys")
    for path in (tmp_path / "keys", Path("/dev/zero")):
        with pytest.raises(InvalidApiKeys, match=rf"{path} is not a regular file"):
            read_api_keys([], path, {})


@pytest.mark.slow
def test_a_key_is_in_no_line_of_the_log_and_in_no_error_wherever_it_is_written(keys: Path) -> None:
    """In a path, a query, a header that is logged, and a model's name, which a worker may log too."""
    noisy = f"{sys.executable} {Path(support.__file__).parent / 'process/noisy_worker.py'}"
    with served_process("--api-key-file", str(keys), "--worker", noisy) as server:
        key = {"authorization": f"Bearer {KEY}"}
        answers = [
            asked(server.url, "GET", f"/v1/models/{KEY}", **key),
            asked(server.url, "GET", f"/v1/{KEY}", **key),
            asked(server.url, "GET", f"/v1/responses/{KEY}?key={KEY}", **key, x_request_id=KEY),
            asked(server.url, "POST", CHAT, chat_body("hello", model=KEY), **key),
            asked(server.url, "POST", CHAT, {"model": "mock", "messages": [], KEY: KEY}, **key),
        ]
        server.wait_for_line("was asked to load")
        asked(server.url, "GET", "/health", x_request_id="last-line")
        server.wait_for_line("last-line")
    assert KEY not in "".join(server.log)
    assert "[API key]" in "".join(server.log)
    assert not [answer for answer in answers if answer.status >= 400 and KEY.encode() in answer.body]


@pytest.mark.slow
def test_a_worker_is_not_given_the_key_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LMWIRE_API_KEY", KEY)
    noisy = f"{sys.executable} {Path(support.__file__).parent / 'process/noisy_worker.py'}"
    with served_process("--worker", noisy) as server:
        assert chat(server.url).status == 401
        chat(server.url, authorization=f"Bearer {KEY}")
        assert "environment: no key" in server.wait_for_line("environment: ")
