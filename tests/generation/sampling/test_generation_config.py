"""The sampling defaults of a model's generation_config.json, in a real worker."""

import json
from pathlib import Path
from typing import Any

import pytest

from lmwire_protocol.events import SamplingDefaults
from lmwire_worker.models.model_info import read_sampling_defaults
from random_model import write_model
from support.process.worker_process import Event, WorkerProcess
from support.process.worker_thread import RealOnThread

pytestmark = pytest.mark.slow

SAMPLED = {"temperature": 1.5, "top_k": 20, "top_p": 0.9, "min_p": 0.01, "repetition_penalty": 1.2}
GENERATE = {"cmd": "generate", "prompt": "Once upon a time", "max_tokens": 24, "seed": 7, "cache": "off"}


def configured(folder: Path, **config: Any) -> Path:
    (folder / "generation_config.json").write_text(json.dumps(config))
    return folder


def tokens(worker: WorkerProcess, id: str, **fields: Any) -> list[int]:
    """Return the tokens of an answer."""
    ended = worker.call({"id": id, **GENERATE, **fields})
    assert ended["event"] == "done", ended
    return worker.token_ids(id)


def load(worker: WorkerProcess, id: str, folder: Path, **fields: Any) -> Event:
    loaded = worker.call({"id": id, "cmd": "load", "path": str(folder), **fields})
    assert loaded["event"] == "done", loaded
    return loaded


def test_a_request_that_sets_nothing_has_the_values_of_the_model(tmp_path: Path) -> None:
    folder = configured(write_model(tmp_path / "model"), do_sample=True, eos_token_id=[1], **SAMPLED)
    with RealOnThread() as worker:
        assert "load.generation_config" in worker.call({"id": "hello", "cmd": "hello"})["features"]
        assert "sampling_defaults" not in load(worker, "off", folder)
        greedy = tokens(worker, "greedy")
        wanted = tokens(worker, "wanted", **SAMPLED)
        assert greedy != wanted

        assert load(worker, "on", folder, generation_config=True)["sampling_defaults"] == SAMPLED
        assert worker.call({"id": "info", "cmd": "info"})["sampling_defaults"] == SAMPLED
        assert tokens(worker, "silent") == wanted
        given = {"temperature": 0, "repetition_penalty": 1}
        assert tokens(worker, "given", **given) == greedy, "a request's own value wins, also the protocol's default"

        assert "sampling_defaults" not in load(worker, "off-again", folder)
        assert tokens(worker, "greedy-again") == greedy


def test_sampling_defaults_apply_to_chats_and_to_requests_sent_before_the_load_ended(tmp_path: Path) -> None:
    folder = configured(write_model(tmp_path / "model"), temperature=1.5, do_sample=True)
    chat = {"cmd": "chat", "prompt": None, "messages": [{"role": "user", "content": "Hi"}]}
    with RealOnThread() as worker:
        load(worker, "off", folder)
        wanted = tokens(worker, "wanted", **chat, temperature=1.5)
        worker.send(
            {"id": "on", "cmd": "load", "path": str(folder), "generation_config": True},
            {"id": "silent", **GENERATE, **chat},
        )
        assert worker.terminal("silent")["event"] == "done"
        assert worker.token_ids("silent") == wanted


@pytest.mark.parametrize(
    ("config", "defaults"),
    [
        ({"do_sample": False, "temperature": 0.7, "top_p": 0.8}, SamplingDefaults(temperature=0.0, top_p=0.8)),
        ({"do_sample": True, "top_k": 50}, SamplingDefaults(temperature=1.0, top_k=50)),
        ({"temperature": 0.6, "top_p": None}, SamplingDefaults(temperature=0.6)),
        ({"max_new_tokens": 5, "transformers_version": "5.0"}, None),
        ({}, None),
    ],
)
def test_do_sample_is_read_as_hugging_face_defines_it(
    tmp_path: Path, config: dict[str, Any], defaults: SamplingDefaults | None
) -> None:
    assert read_sampling_defaults(configured(tmp_path, **config)) == defaults


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("temperature", -1),
        ("temperature", "hot"),
        ("temperature", True),
        ("top_p", 0),
        ("top_p", 2),
        ("top_k", -5),
        ("top_k", 1.5),
        ("top_k", 10**30),
        ("min_p", [0.1]),
        ("repetition_penalty", 0),
        ("repetition_penalty", {"a": 1}),
    ],
)
def test_a_value_that_no_request_may_have_is_ignored_with_a_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, value: Any
) -> None:
    folder = configured(tmp_path, **{"top_p": 0.5, "min_p": 0.25} | {name: value})
    found = read_sampling_defaults(folder)
    assert found is not None and getattr(found, name) is None
    assert f"generation_config.json: {name} is ignored" in capsys.readouterr().err


@pytest.mark.parametrize("content", ["[1]", "{", "NaN", ""])
def test_a_file_that_is_not_an_object_is_ignored_with_a_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str
) -> None:
    (tmp_path / "generation_config.json").write_text(content)
    assert read_sampling_defaults(tmp_path) is None
    assert "is ignored" in capsys.readouterr().err
