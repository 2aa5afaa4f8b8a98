"""Models in Ollama's API: lists, descriptions, and how long they stay in memory."""

import shutil
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import ollama
import pytest

from lmwire_worker.models.resolve import BUILTIN
from random_vision import write_vision_model
from support.http.http_server import MOCK, Server, served, wait_until
from support.http.ollama_http import MODEL, client, user
from support.models.random_embeddings import write_embedding_model


@pytest.fixture
def server() -> Iterator[Server]:
    """Serve the mock worker as the only model, which is not loaded yet."""
    with served(MODEL, "--worker", MOCK) as server:
        yield server


@pytest.fixture(scope="module")
def different(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ollama.Client]:
    """Serve a model that chats, one that sees and one that embeds."""
    folder = tmp_path_factory.mktemp("models")
    shutil.copytree(BUILTIN / "tiny", folder / "Chats")
    write_vision_model(folder / "Sees", "qwen3_vl")
    write_embedding_model(folder / "Embeds")
    (folder / "Chats" / "LICENSE").write_text("Do as you like.")
    (folder / "Embeds" / "README.md").write_text("---\nlanguage: en\nlicense: apache-2.0\n---\n# Embeds\n")
    with served(*(str(folder / name) for name in ("Chats", "Sees", "Embeds"))) as server:
        yield client(server)


def loaded(client: ollama.Client) -> dict[str | None, datetime]:
    """Return the times at which the loaded models are unloaded."""
    return {model.model: model.expires_at or datetime.min for model in client.ps().models}


@pytest.mark.slow
def test_the_list_has_each_model_with_its_size_and_form(different: ollama.Client) -> None:
    models = {model.model: model for model in different.list().models}
    assert set(models) == {"Chats", "Sees", "Embeds"}
    chats = models["Chats"]
    assert chats.size and chats.size > 100_000
    assert len(chats.digest or "") == 64 and chats.digest != models["Sees"].digest
    assert chats.modified_at and chats.modified_at > datetime(2020, 1, 1, tzinfo=UTC)
    assert chats.details and (chats.details.family, chats.details.format) == ("qwen3", "safetensors")
    assert (chats.details.parameter_size, chats.details.quantization_level) == ("3.48M", "F32")
    assert models["Embeds"].details and models["Embeds"].details.quantization_level == "F32"


@pytest.mark.slow
def test_a_model_that_is_not_loaded_is_described_from_its_files(different: ollama.Client) -> None:
    assert loaded(different) == {}
    chats, sees, embeds = (different.show(name) for name in ("Chats", "Sees", "Embeds"))
    assert chats.template and "messages" in chats.template
    assert {"completion", "tools", "thinking"} <= {*(chats.capabilities or ())}
    assert {"completion", "vision"} <= {*(sees.capabilities or ())}
    assert embeds.capabilities == ["embedding"]
    info = chats.modelinfo or {}
    assert info["general.basename"] == "Chats"
    assert chats.details and chats.details.parameter_size == "3.48M"
    assert info["general.parameter_count"] > 0
    assert (chats.license, embeds.license) == ("Do as you like.", "apache-2.0")
    assert info[f"{info['general.architecture']}.context_length"] > 0
    assert loaded(different) == {}


@pytest.mark.slow
def test_a_loaded_model_says_what_it_can(different: ollama.Client) -> None:
    for name, capabilities in (
        ("Chats", {"completion", "tools", "thinking"}),
        ("Sees", {"completion", "vision"}),
        ("Embeds", {"embedding"}),
    ):
        different.embed(name, "") if name == "Embeds" else different.generate(name)
        shown = different.show(f"{name}:latest")
        assert capabilities <= {*(shown.capabilities or ())}, shown.capabilities
        assert ("embedding" in capabilities) == ("embedding" in (shown.capabilities or ()))
        assert ("vision" in capabilities) == ("vision" in (shown.capabilities or ()))
    assert set(loaded(different)) == {"Chats", "Sees", "Embeds"}
    [process] = [model for model in different.ps().models if model.model == "Chats"]
    assert process.size and process.size == process.size_vram
    assert process.context_length and process.context_length > 0


def test_an_empty_request_loads_a_model_and_keep_alive_0_unloads_it(server: Server) -> None:
    ollama_client = client(server)
    for load in (ollama_client.generate, ollama_client.chat):
        answer: Any = load(MODEL)
        assert (answer.done, answer.done_reason) == (True, "load")
        assert set(loaded(ollama_client)) == {MODEL}
        answer = load(MODEL, keep_alive=0)
        assert (answer.done, answer.done_reason) == (True, "unload")
        assert loaded(ollama_client) == {}


def test_an_embedding_model_is_loaded_by_an_empty_input(server: Server) -> None:
    assert client(server).embed(MODEL, "").embeddings == []
    assert set(loaded(client(server))) == {MODEL}


@pytest.mark.parametrize(
    ("keep_alive", "least"),
    [("90s", timedelta(seconds=30)), (3600, timedelta(minutes=30)), (-1, timedelta(days=36500))],
)
def test_a_request_says_how_long_the_model_stays(server: Server, keep_alive: Any, least: timedelta) -> None:
    client(server).chat(MODEL, [user("hello")], keep_alive=keep_alive)
    assert loaded(client(server))[MODEL] - datetime.now(UTC) > least
    client(server).chat(MODEL, [user("hello")])
    assert loaded(client(server))[MODEL] - datetime.now(UTC) > least


def test_keep_alive_0_unloads_the_model_after_the_answer(server: Server) -> None:
    parts = client(server).chat(MODEL, [user("to be or not")], keep_alive=0, stream=True)
    assert "".join(part.message.content or "" for part in parts) == "to be or not"
    wait_until(lambda: loaded(client(server)) == {}, "the model stayed")


@pytest.mark.parametrize("keep_alive", ["soon", "5 minutes", "", "--5m"])
def test_other_durations_are_refused(server: Server, keep_alive: str) -> None:
    with pytest.raises(ollama.ResponseError, match=r"^keep_alive: must be a number of seconds") as error:
        client(server).chat(MODEL, [user("hello")], keep_alive=keep_alive)
    assert error.value.status_code == 400


def test_a_model_that_is_here_is_pulled_at_once(server: Server) -> None:
    assert client(server).pull(MODEL).status == "success"
    statuses = [step.status for step in client(server).pull(f"{MODEL}:latest", stream=True)]
    assert statuses == ["pulling manifest", "success"]


@pytest.mark.slow
def test_a_model_that_is_not_served_is_not_pulled(different: ollama.Client) -> None:
    for stream in (False, True):
        with pytest.raises(ollama.ResponseError, match=r"not found.*lmwire serve") as error:
            list(different.pull("no/such-model", stream=stream))
        assert error.value.status_code == 404


@pytest.mark.slow
def test_of_several_chat_templates_the_default_is_shown(tmp_path: Path) -> None:
    shutil.copytree(BUILTIN / "tiny", tmp_path / "Two")
    (tmp_path / "Two" / "chat_template.jinja").unlink(missing_ok=True)
    config = tmp_path / "Two" / "tokenizer_config.json"
    text = '{"chat_template": [{"name": "rag", "template": "R"}, {"name": "default", "template": "D {{ messages }}"}]}'
    config.write_text(text)
    with served(str(tmp_path / "Two")) as server:
        assert client(server).show("Two").template == "D {{ messages }}"
