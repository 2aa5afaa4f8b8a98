"""Reranking with a tiny Qwen3-Reranker with random weights: its scores are those that the model itself computes."""

import http.client
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mlx.core as mx
import mlx_lm
import pytest

from support.http.http_server import Server, served, wait_until
from support.http.raw_http import Answer, asked
from support.models.random_reranker import write_reranker

QUERY = "What is the capital of China?"
DOCUMENTS = ["Beijing is the capital of China.", "Gravity attracts bodies.", "", "{no} braces", "Paris"]
INSTRUCTION = "Given a web search query, retrieve relevant passages that answer the query"
BEFORE = (
    "<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and the Instruct "
    'provided. Note that the answer can only be "yes" or "no".<|im_end|>\n<|im_start|>user\n'
)
AFTER = "<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n"
"""The texts around a question, as the model's card gives them."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_reranker(tmp_path_factory.mktemp("models") / "Qwen3-Reranker-tiny")


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Server]:
    with served(str(folder)) as server:
        yield server


def rerank(server: Server, path: str = "/v1/rerank", **fields: Any) -> Answer:
    return asked(server.url, "POST", path, {"query": QUERY, "documents": DOCUMENTS, **fields})


def expected_score(folder: Path, document: str, instruction: str = INSTRUCTION) -> float:
    model, tokenizer, *_ = mlx_lm.load(str(folder))
    question = f"<Instruct>: {instruction}\n<Query>: {QUERY}\n<Document>: {document}"
    logits: Any = model(mx.array([tokenizer.encode(BEFORE + question + AFTER)]))[0, -1].astype(mx.float32)
    no, yes = (tokenizer.encode(answer)[0] for answer in ("no", "yes"))
    return float(mx.softmax(logits[mx.array([no, yes])])[1])


@pytest.mark.slow
def test_each_score_is_the_probability_of_yes_against_no(server: Server, folder: Path) -> None:
    answer = rerank(server).json
    scores = {each["index"]: each["relevance_score"] for each in answer["results"]}
    expected = {index: expected_score(folder, document) for index, document in enumerate(DOCUMENTS)}
    assert scores == pytest.approx(expected, abs=1e-4)
    assert len(set(scores.values())) == len(DOCUMENTS)


@pytest.mark.slow
def test_the_most_relevant_document_comes_first_with_its_text(server: Server) -> None:
    answer = rerank(server, documents=[{"text": document} for document in DOCUMENTS]).json
    scores = [each["relevance_score"] for each in answer["results"]]
    assert scores == sorted(scores, reverse=True)
    assert [each["document"]["text"] for each in answer["results"]] == [
        DOCUMENTS[each["index"]] for each in answer["results"]
    ]
    assert answer["usage"]["prompt_tokens"] == answer["usage"]["total_tokens"] > len(DOCUMENTS) * len(BEFORE) // 2
    assert answer["id"].startswith("rerank-")


@pytest.mark.slow
def test_top_n_limits_the_results_and_documents_can_be_left_out(server: Server) -> None:
    whole = rerank(server).json["results"]
    best = rerank(server, top_n=2, return_documents=False).json["results"]
    assert [each["index"] for each in best] == [each["index"] for each in whole[:2]]
    assert all("document" not in each for each in best)
    assert len(rerank(server, top_n=99).json["results"]) == len(DOCUMENTS)


@pytest.mark.slow
def test_an_instruction_replaces_the_models_own(server: Server, folder: Path) -> None:
    answer = rerank(server, documents=["Paris"], instruction="Find a city").json
    expected = expected_score(folder, "Paris", "Find a city")
    assert answer["results"][0]["relevance_score"] == pytest.approx(expected, abs=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("path", ["/rerank", "/v2/rerank", "/v1/rerank/"])
def test_the_paths_of_other_apis_answer_alike(server: Server, path: str) -> None:
    assert rerank(server, path).json["results"] == rerank(server).json["results"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"documents": []}, "documents"),
        ({"documents": ["a"] * 1001}, "documents"),
        ({"documents": ["a", 1]}, "documents[1]"),
        ({"documents": ["a", {"title": "b"}]}, "documents[1].text"),
        ({"documents": [{"text": "a", "image": "data:"}]}, "documents[0].image"),
        ({"documents": ["a", "longer than the context " * 1000]}, "documents[1]"),
        ({"query": ""}, "query"),
        ({"top_n": 0}, "top_n"),
        ({"instruction": ""}, "instruction"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_field_that_is_wrong_is_named(server: Server, fields: dict[str, Any], param: str) -> None:
    answer = rerank(server, **fields)
    assert (answer.status, answer.json["error"]["param"]) == (400, param)
    assert param in answer.json["error"]["message"]


@pytest.mark.slow
def test_a_model_that_is_not_a_reranker_says_which_kind_to_serve(tiny_server: Server) -> None:
    answer = rerank(tiny_server, model="builtin:tiny")
    assert (answer.status, answer.json["error"]["code"], answer.json["error"]["param"]) == (501, "unsupported", "model")
    assert "builtin:tiny is not a reranker; serve one of the Qwen3-Reranker family" in answer.json["error"]["message"]


@pytest.mark.slow
def test_a_client_that_disconnects_ends_the_work_on_its_documents(server: Server) -> None:
    rerank(server)
    before = server.figure("lmwire_worker_requests_total")
    connection = http.client.HTTPConnection(server.url.removeprefix("http://"))
    body = json.dumps({"query": QUERY, "documents": [f"{number} {'long ' * 600}" for number in range(1000)]})
    connection.request("POST", "/v1/rerank", body, {"content-type": "application/json"})
    wait_until(lambda: server.figure("lmwire_worker_requests_active") > 0, "no document was begun")
    connection.close()
    server.wait_for("lmwire_worker_requests_active", 0)
    assert server.figure("lmwire_worker_requests_total") - before < 1000


def test_a_probability_of_0_is_a_relevance_of_0_or_1() -> None:
    from lmwire_http.rerank import relevance

    assert relevance(-math.inf, -1.0) == relevance(-math.inf, -math.inf) == 0
    assert relevance(-1.0, -math.inf) == 1
    assert relevance(-800.0, -1.0) == pytest.approx(0)
