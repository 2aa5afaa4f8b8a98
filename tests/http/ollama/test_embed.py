"""/api/embed and /api/embeddings through Ollama's own client."""

import asyncio
import math
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import ollama
import pytest

from support.http.http_server import Server, served
from support.http.ollama_http import async_client, client
from support.models.random_embeddings import write_embedding_model

TEXTS = ["the sea", "the ocean", "a much longer text about something else"]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder: Path = write_embedding_model(tmp_path_factory.mktemp("models") / "Embeds")
    with served(str(folder)) as server:
        yield server


def length(vector: Sequence[float]) -> float:
    return math.sqrt(sum(value * value for value in vector))


@pytest.mark.slow
def test_each_text_has_a_vector_of_length_1(server: Server) -> None:
    made = client(server).embed("Embeds", TEXTS)
    assert (made.model, len(made.embeddings)) == ("Embeds", 3)
    assert [length(vector) for vector in made.embeddings] == pytest.approx([1, 1, 1], abs=1e-5)
    assert made.prompt_eval_count and made.total_duration and made.total_duration >= (made.load_duration or 0)


@pytest.mark.slow
def test_one_text_has_the_same_vector_alone(server: Server) -> None:
    several = client(server).embed("Embeds", TEXTS).embeddings
    alone = asyncio.run(async_client(server).embed("Embeds", TEXTS[1])).embeddings
    assert list(alone[0]) == pytest.approx(list(several[1]), abs=1e-5)


@pytest.mark.slow
def test_dimensions_shorten_the_vectors(server: Server) -> None:
    [vector] = client(server).embed("Embeds", TEXTS[0], dimensions=4).embeddings
    assert (len(vector), length(vector)) == (4, pytest.approx(1, abs=1e-5))


def test_the_older_form_has_one_vector_at_its_own_length(mock_server: Server) -> None:
    vector = client(mock_server).embeddings("mock", TEXTS[0]).embedding
    [unit] = client(mock_server).embed("mock", TEXTS[0]).embeddings
    assert [value / length(vector) for value in vector] == pytest.approx(list(unit), abs=1e-5)
    assert length(vector) != pytest.approx(1, abs=1e-3)


@pytest.mark.slow
def test_a_model_without_embeddings_says_which_kind_to_load(tiny_server: Server) -> None:
    with pytest.raises(ollama.ResponseError, match="load an embedding model") as error:
        client(tiny_server).embed("builtin:tiny", "hello")
    assert error.value.status_code == 501


@pytest.mark.slow
def test_a_model_of_vectors_does_not_chat(server: Server) -> None:
    with pytest.raises(ollama.ResponseError, match=r'^model: "Embeds" does not support chat: ') as error:
        client(server).chat("Embeds", [{"role": "user", "content": "hello"}])
    assert error.value.status_code == 400
    with pytest.raises(ollama.ResponseError, match=r'^model: "Embeds" does not support generate: '):
        client(server).generate("Embeds", "hello", raw=True)


@pytest.mark.slow
@pytest.mark.parametrize("texts", ["a text", ["short", "a text"]])
def test_a_text_that_is_too_long_is_named(server: Server, texts: str | list[str]) -> None:
    long = "word " * 20_000
    given = long if isinstance(texts, str) else [*texts[:-1], long]
    named = "input: " if isinstance(texts, str) else "input[1]: "
    with pytest.raises(ollama.ResponseError, match=re.escape(f"the input length exceeds the context length: {named}")):
        client(server).embed("Embeds", given, truncate=False)


@pytest.mark.slow
def test_the_end_of_a_text_that_is_too_long_is_cut_off(server: Server) -> None:
    long = "the sea " * 20_000
    made = client(server).embed("Embeds", ["the sea", long, long + "ends elsewhere"])
    _, whole, other = made.embeddings
    assert list(whole) == pytest.approx(list(other), abs=1e-6)
    assert length(client(server).embeddings("Embeds", long).embedding) > 0


@pytest.mark.slow
def test_num_ctx_limits_each_text(server: Server) -> None:
    options = {"num_ctx": 4}
    long = "the sea and the ocean"
    made = client(server).embed("Embeds", ["the", long], options=options)
    whole = client(server).embed("Embeds", ["the", long])
    assert list(made.embeddings[0]) == pytest.approx(list(whole.embeddings[0]), abs=1e-6)
    assert list(made.embeddings[1]) != pytest.approx(list(whole.embeddings[1]), abs=1e-6)
    assert (made.prompt_eval_count or 0) <= 8
    assert client(server).embeddings("Embeds", long, options=options).embedding
    beyond = client(server).embed("Embeds", long, options={"num_ctx": 100_000}, truncate=False)
    assert list(beyond.embeddings[0]) == pytest.approx(list(whole.embeddings[1]), abs=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(("num_ctx", "truncate"), [(4, False), (0, True), (-1, None)])
def test_a_text_that_num_ctx_does_not_allow_is_refused(server: Server, num_ctx: int, truncate: bool | None) -> None:
    with pytest.raises(ollama.ResponseError, match=r"exceeds the context length: input: .*num_ctx") as error:
        client(server).embed("Embeds", "the sea and the ocean", options={"num_ctx": num_ctx}, truncate=truncate)
    assert error.value.status_code == 400
