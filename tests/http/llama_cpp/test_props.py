"""GET /props: what editors ask about a model."""

from typing import Any

import pytest

from support.http.http_server import MOCK, Server, served
from support.http.raw_http import asked


def props(server: Server, query: str = "") -> Any:
    return asked(server.url, "GET", f"/props{query}").json


@pytest.mark.slow
def test_a_model_in_memory_is_described(tiny_server: Server) -> None:
    assert asked(tiny_server.url, "POST", "/v1/models/load", {"model": "builtin:tiny"}).status == 200
    found = props(tiny_server)
    assert found["default_generation_settings"]["n_ctx"] == 2048
    assert found["total_slots"] == 32
    assert found["model_alias"] == found["model_path"] == "builtin:tiny"
    assert found["modalities"] == {"vision": False, "audio": False}
    assert found["build_info"].startswith("lmwire-")


def test_of_several_models_one_is_named() -> None:
    with served("--worker", MOCK, "a", "b") as server:
        assert props(server, "?model=b")["model_alias"] == "b"
        assert props(server)["error"]["param"] == "model"
