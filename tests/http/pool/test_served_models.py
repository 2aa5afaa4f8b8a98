"""Responses over HTTP when a worker dies and when there are too many requests."""

import json
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from random_model import write_model
from support.http.http_server import Server, served
from support.http.raw_http import CHAT, Answer, RawClient, asked, chat_body
from support.process.stepped_worker import in_a_row, let_through

pytestmark = pytest.mark.slow

CRASH = "--fault crash-mid-stream:after=2"
ENDLESS = {"rules": [{"reply": {"tokens": ["on "], "token_ms": 1, "then": "repeat"}}]}


@contextmanager
def playing(folder: Path, *plans: str, options: tuple[str, ...] = ()) -> Iterator[Server]:
    """A server whose workers play these plans in turn."""
    with served("--worker", shlex.join(in_a_row(folder, *plans)), *options) as server:
        yield server


def chat(server: Server, model: str = "mock", **fields: object) -> Answer:
    """The server's answer to four words, which are the model's answer to them."""
    return asked(server.url, "POST", CHAT, chat_body("to be or not", model=model, max_tokens=4, **fields))


def text(answer: Answer) -> str:
    assert answer.status == 200, answer.body
    return answer.json["choices"][0]["message"]["content"]


def test_a_death_is_an_event_in_the_stream_or_a_503_and_the_next_request_is_served(tmp_path: Path) -> None:
    with playing(tmp_path, CRASH, CRASH, "") as server:
        streamed = chat(server, stream=True)
        *chunks, last = [
            json.loads(frame.removeprefix("data: ")) for frame in streamed.body.decode().split("\n\n")[:-1]
        ]
        assert "".join(chunk["choices"][0]["delta"].get("content", "") for chunk in chunks) == "to be "
        assert (streamed.status, last["error"]["code"]) == (200, "worker_lost")
        whole = chat(server)
        assert (whole.status, whole.headers["retry-after"], whole.json["error"]["code"]) == (503, "1", "worker_lost")
        assert text(chat(server)) == "to be or not"
        assert server.figure("lmwire_worker_deaths_total", model="mock") == 2
        assert server.figure("lmwire_worker_restarts_total", model="mock") == 2


def test_the_death_of_one_model_leaves_the_streams_of_another_alone(tmp_path: Path) -> None:
    (endless := tmp_path / "endless.json").write_text(json.dumps(ENDLESS))
    with playing(tmp_path / "workers", f"--scenario {endless}", CRASH, "") as server, RawClient(server.url) as client:
        client.chat("go", stream=True)
        client.read_until(b'"on "')
        assert chat(server, "mock:step_ms=1").status == 503
        assert text(chat(server, "mock:step_ms=1")) == "to be or not"
        assert server.figure("lmwire_worker_requests_in_flight", model="mock") == 1
        assert server.figure("lmwire_worker_deaths_total", model="mock") == 0


def test_more_requests_than_may_wait_learn_when_to_retry(tmp_path: Path) -> None:
    with playing(tmp_path, "gate", options=("--max-queue", "1")) as server, RawClient(server.url) as client:
        client.chat("first", max_tokens=1)
        server.wait_for("lmwire_model_requests_waiting", 1, model="mock")
        refused = chat(server)
        assert (refused.status, refused.headers["retry-after"]) == (429, "1")
        assert refused.json["error"]["type"] == "rate_limit_error"
        let_through(tmp_path, 0)
        assert text(client.answer()) == "first"
        assert text(chat(server)) == "to be or not"


def test_a_folder_is_served_only_where_that_was_allowed(tmp_path: Path) -> None:
    model = str(write_model(tmp_path / "model"))
    (tmp_path / "empty").mkdir()
    with served() as server:
        (words,) = {
            asked_for(server, name).replace(name, "NAME") for name in (model, f"{tmp_path}/empty", f"{tmp_path}/no")
        }
        assert words.startswith("the model 'NAME' is not served here; there are ")
        assert "no config.json" not in "".join(server.log)
    with served("--allow-paths") as server:
        assert chat(server, model).status == 200
        assert asked_for(server, f"{tmp_path}/empty") == asked_for(server, f"{tmp_path}/no").replace("/no'", "/empty'")
        assert "no config.json" in server.wait_for_line("cannot run")
        index = {"weight_map": {"model.norm.weight": "model-00002-of-00002.safetensors"}}
        Path(model, "model.safetensors.index.json").write_text(json.dumps(index))
    with served("--allow-paths") as server:
        assert asked_for(server, model).endswith("lacks 1 of its weight files: 'model-00002-of-00002.safetensors'")


def asked_for(server: Server, name: str) -> str:
    """Return the error for a model that is not served, the same from every endpoint."""
    answers = chat(server, name), asked(server.url, "GET", f"/v1/models/{name}")
    assert {(answer.status, answer.json["error"]["code"]) for answer in answers} == {(404, "model_not_found")}
    errors = [{**answer.json["error"], "request_id": None} for answer in answers]
    assert errors[0] == errors[1]
    return answers[0].json["error"]["message"]
