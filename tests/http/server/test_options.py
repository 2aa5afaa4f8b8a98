"""Effects of the options of `lmwire serve`, each on a server of its own. Other files test the rest."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lmwire_worker.models.resolve import BUILTIN
from random_model import write_model
from support.http.http_server import MOCK, Server, served, served_process, stopped_worker
from support.http.ports import unused_port
from support.http.raw_http import CHAT, Answer, RawClient, asked, chat_body
from support.models.adapters import write_adapter
from support.models.fake_hub import only_hub
from support.models.misbehaving_models import RAISES, write_misbehaving_model
from support.process.worker_process import SECONDS

pytestmark = pytest.mark.slow

TINY = "builtin:tiny"


def ask(server: Server, *, model: str = TINY, words: str = "Who are you?", **fields: Any) -> Answer:
    return asked(server.url, "POST", CHAT, chat_body(words, model=model, **fields))


def logprob(server: Server) -> float:
    """Return the logprob of the last token, which shows how the tokens before it were computed."""
    answer = ask(server, words="zq xv, wq 7", max_tokens=8, temperature=0, logprobs=True)
    assert answer.status == 200, answer.body
    return answer.json["choices"][0]["logprobs"]["content"][-1]["logprob"]


@pytest.fixture(scope="module")
def plain() -> Iterator[Server]:
    with served(TINY) as server:
        yield server


def test_a_draft_model_has_tokens_accepted_that_it_proposed(plain: Server) -> None:
    with served(TINY, "--draft", TINY) as drafting:
        drafted, alone = (ask(server, max_tokens=20, temperature=0).json for server in (drafting, plain))
    assert drafted["usage"]["completion_tokens_details"]["accepted_prediction_tokens"] > 0
    assert alone["usage"]["completion_tokens_details"]["accepted_prediction_tokens"] == 0
    assert drafted["choices"][0]["message"] == alone["choices"][0]["message"]


def test_a_shorter_context_holds_less(plain: Server) -> None:
    long = chat_body("word " * 100, model=TINY, max_tokens=1)
    with served(TINY, "--context-len", "64") as server:
        refused = asked(server.url, "POST", CHAT, long)
    assert refused.status == 400
    error = refused.json["error"]
    assert (error["code"], error["type"]) == ("context_length_exceeded", "exceed_context_size_error")
    assert (error["n_ctx"], error["n_prompt_tokens"] > 100) == (64, True)
    assert asked(plain.url, "POST", CHAT, long).status == 200


@pytest.mark.nightly  # test_command_line.py shows that the option reaches the load, as it does the next
def test_keys_and_values_of_fewer_bits_are_others(plain: Server) -> None:
    with served(TINY, "--kv-bits", "4") as server:
        assert logprob(server) != logprob(plain)


def test_code_of_a_named_model_runs_only_if_it_is_trusted(tmp_path: Path) -> None:
    folder = str(write_misbehaving_model(tmp_path / "model", RAISES))
    with served_process(folder, "--trust-remote-code") as server:
        assert ask(server, model=folder, max_tokens=1).status == 200
    with served_process(folder) as server:
        assert server.process.wait(SECONDS) == 69
        assert "brings its own code" in server.wait_for_line("cannot start")


def test_a_model_has_its_own_sampling_defaults(tmp_path: Path) -> None:
    folder = write_model(tmp_path / "model")
    (folder / "generation_config.json").write_text('{"temperature": 0.0, "repetition_penalty": 1.5}')
    words = {"model": str(folder), "max_tokens": 24, "seed": 3}
    prompt = {"prompt": "Once upon a time", **words}
    own, wanted = {"temperature": 0, "repetition_penalty": 1.5}, {"temperature": 1, "repetition_penalty": 1}

    def text(server: Server, **fields: object) -> str:
        answer = asked(server.url, "POST", "/v1/completions", prompt | fields)
        assert answer.status == 200, answer.body
        return answer.json["choices"][0]["text"]

    with served(str(folder)) as server:
        assert text(server) == text(server, **own)
        assert text(server, **wanted) != text(server)
        answered = asked(server.url, "POST", "/v1/responses", {"input": "Hi", "model": str(folder)}).json
        assert answered["temperature"] == 0
    with served(str(folder), "--generation-config", "none") as server:
        assert text(server) == text(server, **wanted)


@pytest.mark.nightly
def test_an_adapter_changes_the_answers(plain: Server, tmp_path: Path) -> None:
    adapter = write_adapter(tmp_path / "adapter", BUILTIN / "tiny")
    with served(TINY, "--adapter", str(adapter)) as server:
        assert logprob(server) != logprob(plain)


def test_a_chat_template_is_chosen_by_name(tmp_path: Path) -> None:
    (tmp_path / "long.jinja").write_text("{{ 'a ' * 100 }}{{ messages[0].content }}")
    with served(TINY, "--template-dir", str(tmp_path), "--chat-template", "long") as server:
        assert ask(server, max_tokens=1).json["usage"]["prompt_tokens"] > 100
    with served(TINY, "--chat-template", "nowhere") as server:
        refused = ask(server, max_tokens=1)
    assert refused.status == 400
    assert "there are: default" in refused.json["error"]["message"]


def test_a_model_that_is_larger_than_the_memory_is_refused(tmp_path: Path) -> None:
    with served(TINY, "--memory", "1M") as server:
        refused = ask(server)
    assert refused.status == 507
    assert refused.json["error"]["code"] == "out_of_memory"
    twin = str(shutil.copytree(BUILTIN / "tiny", tmp_path / "twin"))
    with served(TINY, twin) as server:
        assert {ask(server, model=model, max_tokens=1).status for model in (TINY, twin)} == {200}
    assert any("all models together may take" in line for line in server.log)


def test_the_disk_cache_has_a_folder_and_a_size(tmp_path: Path) -> None:
    for folder, size, expected in (("much", "1G", True), ("nothing", "1", False)):
        with served(TINY, "--cache-dir", str(tmp_path / folder), "--cache-disk", size) as server:
            assert ask(server, words="word " * 100, max_tokens=1).status == 200
        assert any(file.is_file() for file in (tmp_path / folder).rglob("*")) == expected


def test_answers_to_requests_without_a_limit_have_the_servers(plain: Server) -> None:
    asks: list[tuple[str, dict[str, Any], str]] = [
        (CHAT, chat_body("Who are you?", model=TINY), "max_completion_tokens"),
        ("/v1/completions", {"model": TINY, "prompt": "Who are you?"}, "max_tokens"),
        ("/v1/responses", {"model": TINY, "input": "Who are you?"}, "max_output_tokens"),
    ]

    def lengths(server: Server, limit: int | None = None) -> list[int]:
        answers = [
            asked(server.url, "POST", path, {**body, "ignore_eos": True, field: limit}) for path, body, field in asks
        ]
        usages = [answer.json["usage"] for answer in answers]
        return [usage.get("completion_tokens", usage.get("output_tokens")) for usage in usages]

    with served(TINY, "--max-tokens", "3") as server:
        assert lengths(server) == [3, 3, 3]
        assert lengths(server, limit=5) == [5, 5, 5]
    with served(TINY, "--context-len", "64") as server:
        chat, completion, response = lengths(server)
    assert completion == 16
    assert chat == response > 16


def test_a_body_that_is_too_large_is_refused() -> None:
    with served("--worker", MOCK, "--max-body", "100") as server:
        assert ask(server, model="mock", stop="word " * 100).status == 413
        assert asked(server.url, "POST", CHAT, chat_body("a", model="mock")).status == 200


def test_the_oldest_stored_response_is_dropped_at_the_limit() -> None:
    with served("--worker", MOCK, "--stored", "1") as server:
        first, second = (
            asked(server.url, "POST", "/v1/responses", {"model": "mock", "input": "a"}).json["id"] for _ in range(2)
        )
        statuses = [asked(server.url, "GET", f"/v1/responses/{id}").status for id in (first, second)]
    assert statuses == [404, 200]


def test_a_model_that_is_not_used_leaves_memory() -> None:
    with served("mock", "--worker", MOCK, "--idle", "0.05") as server:
        assert ask(server, model="mock").status == 200
        server.wait_for("lmwire_model_loaded", 0, model="mock")


def test_a_model_has_as_many_workers_as_asked_for() -> None:
    with served("mock", "--worker", MOCK, "--replicas", "2") as server:
        assert ask(server, model="mock").status == 200
        metrics = asked(server.url, "GET", "/metrics").body.decode()
    assert 'replica="1"' in metrics
    assert 'replica="2"' not in metrics


def test_the_port_is_the_given_one() -> None:
    port = unused_port()
    with served("--worker", MOCK, "--port", str(port)) as server:
        assert server.url == f"http://127.0.0.1:{port}"


def test_the_host_is_the_given_one() -> None:
    with served("--worker", MOCK, "--host", "localhost") as server:
        assert server.url.startswith("http://localhost:")
        assert asked(server.url, "GET", "/v1/models").status == 200


def test_a_request_waits_for_memory_no_longer_than_the_given_time(tmp_path: Path) -> None:
    twin = shutil.copytree(BUILTIN / "tiny", tmp_path / "twin")
    with (
        served_process(TINY, str(twin), "--memory", "24M", "--memory-wait", "0.2") as server,
        RawClient(server.url) as client,
    ):
        assert ask(server, max_tokens=1).status == 200
        with stopped_worker(server):  # with more time the twin would load when the answer has ended
            client.chat("Who are you?", model=TINY)
            server.wait_for("lmwire_worker_requests_in_flight", 1)
            refused = ask(server, model=str(twin))
        assert refused.status == 503, refused.body
        assert refused.json["error"]["code"] == "no_room"
        assert client.answer().status == 200


def test_a_model_is_downloaded_for_a_request_if_that_is_allowed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "owner/small"
    with only_hub(name, tmp_path, monkeypatch) as hub:
        with served() as server:
            assert (ask(server, model=name).status, hub.requests) == (404, [])
        with served("--download") as server:
            assert ask(server, model=name, max_tokens=1).status == 200


def test_the_models_that_are_named_are_served_and_no_others() -> None:
    with served("mock", "--worker", MOCK) as server:
        listed = json.loads(asked(server.url, "GET", "/v1/models").body)
        assert [model["id"] for model in listed["data"]] == ["mock"]
        assert ask(server, model="other").status == 404
