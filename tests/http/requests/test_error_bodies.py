"""Error bodies: retryable and request_id in every dialect, 501 and 507, and no path of the server."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest

from lmwire import RequestFailed
from lmwire_http.errors import MAX_MESSAGE_CHARS, api_error, invalid_field
from lmwire_http.pool.hidden_paths import PathRedactor
from lmwire_http.pool.model_resolver import ModelSpec
from lmwire_protocol import events
from lmwire_worker.models.resolve import BUILTIN
from random_model import write_model
from support.http.http_server import MOCK, Server, served
from support.http.raw_http import CHAT, Answer, asked, chat_body

SECRET = "project-plumbago"
PATHS = (CHAT, "/v1/completions", "/v1/responses", "/v1/messages")
STATUSES = {
    "busy": (429, True),
    "unsupported": (501, False),
    "out_of_memory": (507, False),
    "engine_error": (500, False),
}
"""Status and `retryable` for some codes of the worker."""


def body(path: str, words: str, model: str = "mock", **fields: Any) -> dict[str, Any]:
    """Return the body of a request with these words."""
    message = [{"role": "user", "content": words}]
    prompts = {"/v1/completions": {"prompt": words}, "/v1/responses": {"input": words}}
    return {"model": model, **prompts.get(path, {"messages": message, "max_tokens": 4}), **fields}


@pytest.fixture(scope="module")
def failing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Serve a mock worker that fails with the code that is the prompt, after a token for `CODE later`."""
    matches = [{"last_message": code} for code in STATUSES] + [{"prompt": code} for code in STATUSES]
    rules: list[dict[str, Any]] = []
    for match in matches:
        [(field, code)] = match.items()
        rules.append({"match": {field: f"{code} later"}, "reply": {"tokens": ["a"], "error": {"code": code}}})
        rules.append({"match": match, "reply": {"error": {"code": code}}})
    script = tmp_path_factory.mktemp("script") / "script.json"
    script.write_text(json.dumps({"rules": rules}))
    with served("--worker", f"{MOCK} --scenario {script}") as server:
        yield server


def details(value: Any) -> tuple[object, object]:
    """Return `retryable` and the request's id of an error body in any dialect."""
    return value["error"]["retryable"], value.get("request_id", value["error"].get("request_id"))


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("code", STATUSES)
def test_an_error_has_its_status_the_requests_id_and_whether_to_retry(failing: Server, path: str, code: str) -> None:
    status, retryable = STATUSES[code]
    answer = asked(failing.url, "POST", path, body(path, code), x_request_id="my-id")
    assert answer.status == status, answer.body
    assert details(answer.json) == (retryable, "my-id")
    assert ("retry-after" in answer.headers) == retryable
    assert answer.headers.get("x-should-retry") == ("false" if status in {501, 507} else None)


@pytest.mark.parametrize("path", PATHS)
def test_the_last_event_of_a_failed_stream_has_them_too(failing: Server, path: str) -> None:
    answer = asked(failing.url, "POST", path, body(path, "unsupported later", stream=True), x_request_id="my-id")
    assert answer.status == 200
    last = json.loads(answer.body.decode().strip().rpartition("data: ")[2])
    assert details(last.get("response", last)) == (False, "my-id")


def test_the_official_clients_do_not_repeat_what_is_not_supported(failing: Server) -> None:
    before = failing.figure("lmwire_http_requests_total", status="501")
    with pytest.raises(openai.InternalServerError) as failure:
        openai.OpenAI(base_url=f"{failing.url}/v1", api_key="any").chat.completions.create(
            model="mock", messages=[{"role": "user", "content": "unsupported"}]
        )
    assert (failure.value.status_code, failure.value.body["retryable"]) == (501, False)  # type: ignore[index]
    with pytest.raises(anthropic.InternalServerError):
        anthropic.Anthropic(base_url=failing.url, api_key="any").messages.create(
            model="mock", max_tokens=9, messages=[{"role": "user", "content": "unsupported"}]
        )
    assert failing.figure("lmwire_http_requests_total", status="501") == before + 2


@pytest.fixture(scope="module")
def secret(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a name that clients must not learn, and with a model."""
    folder = tmp_path_factory.mktemp("parent") / f"My {SECRET}"
    shutil.copytree(BUILTIN / "tiny", folder / "Small")
    return folder


@pytest.fixture(scope="module")
def in_secret_folder(secret: Path) -> Iterator[Server]:
    """Serve a model from that folder, beside one that does not load, and a folder of media."""
    broken = write_model(secret / "Broken")
    (broken / "tokenizer.json").write_text('{"version": "1.0"}')
    (secret / "images").mkdir()
    with served(str(secret / "Small"), str(broken), "--media-dir", str(secret / "images")) as server:
        yield server


def answers(server: Server, secret: Path) -> Iterator[Answer]:
    """Yield the errors of requests that go wrong in many ways, and the list of models."""
    yield asked(server.url, "GET", "/v1/models")
    yield asked(server.url, "POST", CHAT, chat_body("hello", model="none"))
    yield asked(server.url, "POST", "/v1/embeddings", {"model": "Small", "input": "hello"})
    yield asked(server.url, "POST", CHAT, chat_body("hello", model="Broken"))
    yield asked(server.url, "POST", "/v1/messages", body("/v1/messages", "hello", "Broken"))
    yield asked(server.url, "POST", CHAT, chat_body("hello", model="Small", stop=""))
    for name in ("none.png", "../Small/config.json"):
        parts = [{"type": "image_url", "image_url": {"url": f"file:///{name}"}}]
        yield asked(server.url, "POST", CHAT, {"model": "Small", "messages": [{"role": "user", "content": parts}]})


@pytest.mark.slow
def test_no_error_reveals_where_the_models_and_the_media_are(in_secret_folder: Server, secret: Path) -> None:
    listed, *errors = answers(in_secret_folder, secret)
    assert {model["id"] for model in listed.json["data"]} == {"Small", "Broken"}
    assert all(error.status >= 400 for error in errors)
    unsupported, broken = errors[1].json["error"], errors[2].json["error"]
    assert unsupported["message"].startswith("model: Small makes no embeddings; ")
    assert (broken["code"], "Broken" in broken["message"]) == ("bad_model", True)
    assert not [
        each for each in (listed, *errors) if SECRET.encode() in each.body or str(secret.parent).encode() in each.body
    ]


@pytest.mark.slow
def test_the_log_has_the_path_of_a_model_that_does_not_load(in_secret_folder: Server) -> None:
    asked(in_secret_folder.url, "POST", CHAT, chat_body("hello", model="Broken"))
    assert SECRET in in_secret_folder.wait_for_line("Broken is not loaded")


@pytest.mark.slow
def test_a_folder_can_still_be_named_by_its_path(in_secret_folder: Server, secret: Path) -> None:
    answer = asked(in_secret_folder.url, "POST", CHAT, chat_body("hello", model=str(secret / "Small"), max_tokens=1))
    assert answer.status == 200


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("/srv/My Models/m/config.json is not JSON", "m/config.json is not JSON"),
        ("/srv/My Models/m-2 has no weights", "[path] Models/m-2 has no weights"),
        ("No such file or directory: '/usr/lib/a b.so'", "No such file or directory: [path]"),
        ("open /usr/lib/a.so: failed, see (/etc/x)", "open [path]: failed, see ([path])"),
        ("/srv/ad apter has no adapter_config.json", "the adapter has no adapter_config.json"),
        ("no file:///etc/x.bin, and OSError:/etc/x: gone", "no [path], and OSError:[path]: gone"),
        ("see https://hub.example/a/b: 5 tokens/s and/or 3", "see https://hub.example/a/b: 5 tokens/s and/or 3"),
    ],
)
def test_paths_are_replaced_and_other_text_is_not(message: str, shown: str) -> None:
    redactor = PathRedactor(ModelSpec(id="m", path="/srv/My Models/m"), {"adapter_path": "/srv/ad apter"})
    assert redactor.redact(message, any_path=True) == shown


def test_an_error_repeats_a_long_value_in_part() -> None:
    error = invalid_field(f"model: there is no {'x' * 10_000_000}; name another one", "y" * 10_000_000)
    assert len(error.message) == MAX_MESSAGE_CHARS and len(error.param or "") == MAX_MESSAGE_CHARS
    assert error.message.startswith("model: there is no x") and error.message.endswith("x; name another one")


def test_an_error_recommends_no_field_that_only_the_pipe_has() -> None:
    problem = "m needs 9 GiB, and 4 GiB are free; `force` loads it anyway"
    event = events.Error(id="1", code="out_of_memory", error=problem, retryable=False)
    found = api_error(RequestFailed(event))
    assert (found.status, found.message) == (507, "m needs 9 GiB, and 4 GiB are free; serve a smaller model")
