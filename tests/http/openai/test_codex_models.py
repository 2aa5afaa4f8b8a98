"""The models of /v1/models as Codex CLI reads them."""

from typing import Any

import pytest

from lmwire_http.openai.models import codex_models
from lmwire_http.pool import ServedModel
from lmwire_protocol import events
from support.http.http_server import Server
from support.http.raw_http import asked

NEEDED = {
    "slug",
    "display_name",
    "base_instructions",
    "shell_type",
    "visibility",
    "supported_in_api",
    "supported_reasoning_levels",
    "support_verbosity",
    "truncation_policy",
    "experimental_supported_tools",
    "priority",
}
"""Fields without which Codex 0.169 refuses the list."""


def model(id: str, *capabilities: str, context_len: int | None = None) -> ServedModel:
    return ServedModel(
        id=id,
        path=id,
        size_bytes=0,
        model_type="llama",
        bits=None,
        kind="text",
        context_len=context_len,
        loaded=_loaded(list(capabilities)) if capabilities else None,
        state="loaded" if capabilities else "unloaded",
    )


def _loaded(capabilities: list[str]) -> events.ModelDone:
    fields: Any = {"capabilities": capabilities, "model_type": "llama", "vocab_size": 9, "layers": 1}
    return events.ModelDone(id="1", path="/m", hidden_size=8, context_len=64, weights_bytes=1, **fields)


@pytest.mark.slow
def test_codex_reads_the_models_beside_openais_list(tiny_server: Server) -> None:
    listed = asked(tiny_server.url, "GET", "/v1/models?client_version=0.169.0").json
    [tiny] = listed["models"]
    assert tiny.keys() >= NEEDED
    assert (tiny["slug"], tiny["context_window"]) == (listed["data"][0]["id"], 2048)
    assert "models" not in asked(tiny_server.url, "GET", "/v1/models/builtin:tiny").json


def test_models_that_cannot_chat_are_not_for_codex() -> None:
    listed = codex_models([model("chats", "chat"), model("embeds", "embed"), model("unknown")])
    assert [(each.slug, each.priority) for each in listed] == [("chats", 0), ("unknown", 1)]


def test_only_a_model_that_is_known_to_see_gets_images() -> None:
    sees, blind, unknown = codex_models([model("sees", "chat", "images"), model("blind", "chat"), model("unknown")])
    assert [sees.input_modalities, blind.input_modalities, unknown.input_modalities] == [
        ["text", "image"],
        ["text"],
        ["text"],
    ]


def test_an_unknown_context_is_left_to_codex() -> None:
    known, unknown = codex_models([model("a", context_len=8192), model("b")])
    assert (known.context_window, unknown.context_window) == (8192, None)
