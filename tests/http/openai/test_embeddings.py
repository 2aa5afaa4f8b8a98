"""Embeddings with OpenAI's own client: of a tiny model with random weights, and of the mock worker."""

import asyncio
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest
from openai import AsyncOpenAI, OpenAI

from support.http.http_server import MOCK, Server, served
from support.models.random_embeddings import write_embedding_model

TEXTS = ["the sea", "the ocean", "a much longer text about something else"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_embedding_model(tmp_path_factory.mktemp("models") / "bert")


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Server]:
    with served(str(folder)) as server:
        yield server


@pytest.fixture(scope="module")
def client(server: Server) -> OpenAI:
    return OpenAI(base_url=f"{server.url}/v1", api_key="any", max_retries=0)


@pytest.mark.slow
def test_each_text_has_a_vector_of_length_1(client: OpenAI, folder: Path) -> None:
    made = client.embeddings.create(model=str(folder), input=TEXTS)
    assert (made.object, made.model) == ("list", str(folder))
    assert [each.index for each in made.data] == [0, 1, 2]
    for each in made.data:
        assert len(each.embedding) == 64
        assert math.hypot(*each.embedding) == pytest.approx(1)
    assert made.usage.prompt_tokens == made.usage.total_tokens > 3
    alone = client.embeddings.create(model=str(folder), input=TEXTS[1])
    assert alone.data[0].embedding == pytest.approx(made.data[1].embedding, abs=1e-5)


@pytest.mark.slow
def test_numbers_and_base64_are_the_same_vector(client: OpenAI, folder: Path) -> None:
    decoded = client.embeddings.create(model=str(folder), input="the sea")  # the client asks for base64 by itself
    numbers = client.embeddings.create(model=str(folder), input="the sea", encoding_format="float")
    assert numbers.data[0].embedding == pytest.approx(decoded.data[0].embedding, abs=1e-7)
    written: Any = client.embeddings.create(model=str(folder), input="the sea", encoding_format="base64")
    assert isinstance(written.data[0].embedding, str)
    capitals = client.embeddings.create(model=str(folder), input="the sea", extra_body={"encoding_format": "FLOAT"})
    assert capitals.data[0].embedding == numbers.data[0].embedding


@pytest.mark.slow
def test_vectors_can_be_cut_and_left_unscaled(client: OpenAI, folder: Path) -> None:
    whole = client.embeddings.create(model=str(folder), input="the sea").data[0].embedding
    cut = client.embeddings.create(model=str(folder), input="the sea", dimensions=8).data[0].embedding
    assert len(cut) == 8
    assert math.hypot(*cut) == pytest.approx(1)
    assert cut[0] / cut[1] == pytest.approx(whole[0] / whole[1], rel=1e-4)


@pytest.mark.slow
def test_tasks_embed_beside_each_other(server: Server, folder: Path) -> None:
    async def all_of_them() -> list[list[float]]:
        async with AsyncOpenAI(base_url=f"{server.url}/v1", api_key="any") as client:
            made = await asyncio.gather(
                *(client.embeddings.create(model=str(folder), input=text) for text in TEXTS * 4)
            )
            return [each.data[0].embedding for each in made]

    vectors = asyncio.run(all_of_them())
    for first, again in zip(vectors[:3], vectors[3:6], strict=True):
        assert again == pytest.approx(first, abs=1e-5)
    assert vectors[0] != pytest.approx(vectors[2], abs=1e-2)


def test_a_scripted_worker_s_vectors_come_as_they_are(tmp_path: Path) -> None:
    scenario = tmp_path / "embed.json"
    rule = {"match": {"cmd": "embed", "fields": {"normalize": False}}, "reply": {"vectors": [[1, 0.5], [0, -2]]}}
    scenario.write_text(json.dumps({"rules": [rule]}))
    with served("--worker", f"{MOCK} --scenario {scenario}") as server:
        client = OpenAI(base_url=f"{server.url}/v1", api_key="any", max_retries=0)
        made = client.embeddings.create(model="mock", input=["a", "b"], extra_body={"normalize": False})
    assert [each.embedding for each in made.data] == [[1, 0.5], [0, -2]]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("input", "fields", "param"),
    [
        ([], {}, "input"),
        ("", {}, "input"),
        (["the sea", ""], {}, "input[1]"),
        ([1, 512], {}, "input[1]"),
        ([[1], [2, 512]], {}, "input[1][1]"),
        ([1, -1], {}, "input[1]"),
        ([[1], []], {}, "input[1]"),
        ([1, "the sea"], {}, "input[1]"),
        (["the sea", [1]], {}, "input[1]"),
        ([1] * 257, {}, "input"),
        ([[1], [1] * 257], {}, "input[1]"),
        (["the sea", {}], {}, "input[1]"),
        ("the sea " * 500, {}, "input"),
        ("the sea", {"dimensions": 65}, "dimensions"),
        ("the sea", {"dimensions": 0}, "dimensions"),
        ("the sea", {"encoding_format": "hex"}, "encoding_format"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_a_field_that_is_wrong_is_named(
    client: OpenAI, folder: Path, input: Any, fields: dict[str, Any], param: str
) -> None:
    with pytest.raises(openai.BadRequestError) as failure:
        client.embeddings.create(model=str(folder), input=input, extra_body=fields)
    assert failure.value.param == param
    assert param in failure.value.message


@pytest.mark.slow
def test_a_text_that_is_too_long_is_cut_where_the_request_or_the_server_says_so(client: OpenAI, folder: Path) -> None:
    long = "the sea " * 500
    asked = client.embeddings.create(model=str(folder), input=["the sea", long], extra_body={"truncate": True})
    whole = client.embeddings.create(model=str(folder), input="the sea").usage.prompt_tokens
    assert asked.usage.prompt_tokens > 10 * whole
    with served(str(folder), "--truncate-inputs") as server:
        cutting = OpenAI(base_url=f"{server.url}/v1", api_key="any", max_retries=0)
        made = cutting.embeddings.create(model=str(folder), input=["the sea", long])
        assert made.data[1].embedding == pytest.approx(asked.data[1].embedding, abs=1e-6)
        with pytest.raises(openai.BadRequestError, match="input: "):
            cutting.embeddings.create(model=str(folder), input=long, extra_body={"truncate": False})


@pytest.mark.slow
def test_token_ids_of_the_model_have_the_vector_of_their_text(server: Server, client: OpenAI, folder: Path) -> None:
    bodies = [{"model": str(folder), "content": text, "add_special": True} for text in TEXTS]
    tokens = [httpx.post(f"{server.url}/tokenize", json=body).json()["tokens"] for body in bodies]
    texts = client.embeddings.create(model=str(folder), input=TEXTS)
    several = client.embeddings.create(model=str(folder), input=tokens)
    one = client.embeddings.create(model=str(folder), input=tokens[2])
    for given, text in zip([*several.data, *one.data], [*texts.data, texts.data[2]], strict=True):
        assert given.embedding == pytest.approx(text.embedding, abs=1e-5)
    assert several.usage == texts.usage


@pytest.mark.slow
def test_token_ids_beyond_the_context_are_cut_on_request(client: OpenAI, folder: Path) -> None:
    long = [3 + place % 50 for place in range(300)]
    cut = client.embeddings.create(model=str(folder), input=[[3], long], extra_body={"truncate": True})
    kept = client.embeddings.create(model=str(folder), input=long[:256])
    assert cut.data[1].embedding == pytest.approx(kept.data[0].embedding, abs=1e-5)
    assert cut.usage.prompt_tokens == 257


@pytest.mark.slow
def test_a_model_that_makes_no_vectors_says_so(tiny_server: Server) -> None:
    client = OpenAI(base_url=f"{tiny_server.url}/v1", api_key="any", max_retries=0)
    with pytest.raises(openai.InternalServerError) as failure:
        client.embeddings.create(model="builtin:tiny", input="the sea")
    error = failure.value
    assert (error.status_code, error.code, error.param) == (501, "unsupported", "model")
    assert "builtin:tiny makes no embeddings; load an embedding model" in error.message
