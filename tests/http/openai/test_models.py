"""The list of models, with OpenAI's own client."""

import json
from pathlib import Path

import openai
import pytest
from openai import OpenAI

from support.http.http_server import MOCK, Server, served


def client_of(server: Server) -> OpenAI:
    return OpenAI(base_url=f"{server.url}/v1", api_key="any", max_retries=0)


@pytest.mark.slow
def test_a_model_is_listed_with_its_context(tiny_server: Server) -> None:
    client = client_of(tiny_server)
    [model] = client.models.list().data
    assert (model.id, model.object, model.owned_by) == ("builtin:tiny", "model", "lmwire")
    assert model.model_dump()["context_length"] == model.model_dump()["max_model_len"] == 2048
    assert model.created > 1_600_000_000
    assert client.models.retrieve("builtin:tiny").id == "builtin:tiny"


@pytest.mark.slow
def test_a_model_that_is_not_there_is_not_found(tiny_server: Server) -> None:
    with pytest.raises(openai.NotFoundError, match="some/nonesuch") as failure:
        client_of(tiny_server).models.retrieve("some/nonesuch")
    assert failure.value.code == "model_not_found"


def test_named_models_keep_their_order_and_list_their_capabilities_once_loaded(tmp_path: Path) -> None:
    scenario = tmp_path / "any.json"
    scenario.write_text(json.dumps({"rules": [{"match": {"cmd": "load"}, "reply": {}}]}))
    with served("owner/a", "owner/b", "--worker", f"{MOCK} --scenario {scenario}") as server:
        client = client_of(server)
        assert [(model.id, model.model_dump()["loaded"]) for model in client.models.list()] == [
            ("owner/a", False),
            ("owner/b", False),
        ]
        client.chat.completions.create(model="owner/b", messages=[{"role": "user", "content": "Hi"}])
        first, second = client.models.list()
        assert [first.id, second.id] == ["owner/a", "owner/b"]
        assert "chat" in second.model_dump()["capabilities"]
        assert client.models.retrieve("owner/b").model_dump()["loaded"]
