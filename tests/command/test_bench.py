"""`lmwire bench`, with counts too small to mean anything: that it works, not what it finds."""

import json
from pathlib import Path

import pytest

import random_model
import random_vision
from lmwire.command.bench.figures import Figure, table
from lmwire.command.bench.turns import extra_ms, ratio
from lmwire.command.bench.workload import SCHEMAS, long, mixed, plain, structured, uncached, with_logprobs, without_end
from lmwire_command import lmwire

FIGURES = {
    "pipe": [
        "1 stream, against stream_generate",
        "8 streams, against BatchGenerator",
        "32 streams, against BatchGenerator",
        "32 different samplers and seeds, against greedy",
        "spawn to hello answered, median",
        "cancel to terminal while decoding, 99th percentile",
        "mock worker to Python client, against json.loads",
    ],
    "generation": [
        "32 streams of JSON of 8 schemas, against plain ones",
        "32 streams with 5 log-probabilities, against plain ones",
        "32 streams, 1 of them with 5 log-probabilities, against plain ones",
        "a token of JSON of a schema, over a plain one, 512 tokens of vocabulary",
    ],
    "mixed": [
        "31 short streams beside one of 8192 tokens, against alone",
        "token gap of 8 streams while a prompt of 16384 tokens is processed, 99th percentile",
        "first token of that prompt beside 8 streams, against alone",
    ],
    "cache": [
        "first token of a prompt of 4096 tokens that is cached, against not",
        "a prompt of 32 tokens that 1000 entries do not know",
    ],
    "vision": [
        "8 chats about images, against BatchGenerator",
        "first token of a second question about an image, against the first",
    ],
}


@pytest.mark.parametrize("benchmark", FIGURES)
def test_it_measures_every_figure(benchmark: str, tmp_path: Path) -> None:
    layers = 1 if benchmark == "mixed" else 2  # a layer alone needs no attention for a prompt
    if benchmark == "vision":
        model = random_vision.write_vision_model(tmp_path)
    else:
        model = random_model.write_model(tmp_path, num_hidden_layers=layers)
    result = lmwire("bench", benchmark, "--model", str(model), "--tokens", "8", "--rounds", "1", "--json")
    assert result.returncode == 0, result.stderr
    report = json.loads(result.stdout)
    assert [figure["name"] for figure in report["figures"]] == FIGURES[benchmark]
    assert all(figure["value"] > 0 for figure in report["figures"] if figure["unit"] == "x")
    assert {"processor", "cores", "system", "python", "mlx", "mlx-lm"} <= set(report["machine"])


def test_a_folder_without_a_model_is_refused(tmp_path: Path) -> None:
    result = lmwire("bench", "pipe", "--model", str(tmp_path))
    assert result.returncode == 64
    assert "no config.json" in result.stderr


def test_the_table_says_what_passed() -> None:
    shown = table(
        [
            Figure("fast enough", 0.98, "x", 0.95, "98 of 100 tok/s"),
            Figure("too slow", 0.9, "x", 0.95, "90 of 100 tok/s"),
            Figure("soon enough", 5, "ms", 60, "3 spawns"),
            Figure("too late", 70, "ms", 60, "3 spawns"),
        ]
    ).splitlines()
    assert shown[1] == "fast enough  0.98x    ≥ 0.95x    pass  98 of 100 tok/s"
    assert [line.split()[-5] for line in shown[1:3]] == ["pass", "MISS"]
    assert [line.split()[-3] for line in shown[3:]] == ["pass", "MISS"]


def test_of_several_turns_the_middle_one_counts() -> None:
    pairs = [(100.0, 50.0), (80.0, 60.0), (100.0, 90.0)]
    assert ratio("r", pairs, 0.7, "tok/s") == Figure("r", 0.75, "x", 0.7, "60 of 80 tok/s")
    extra = extra_ms("e", [(1000.0, 500.0), (500.0, 200.0), (1000.0, 250.0)], 0.3, "a token")
    assert extra == Figure("e", 3.0, "ms", 0.3, "4.00 instead of 1.00 ms a token")


def test_requests_are_compared_with_the_same_that_ask_for_less() -> None:
    base = plain(32, 8)
    for requests, asking in ((structured(32, 8), 32), (with_logprobs(base, 32), 32), (with_logprobs(base, 1), 1)):
        assert [(request.prompt, request.max_tokens, request.ignore_eos) for request in requests] == [
            (request.prompt, request.max_tokens, request.ignore_eos) for request in base
        ]
        assert sum(request != other for request, other in zip(requests, base, strict=True)) == asking
    assert len({str(request.format) for request in structured(32, 8)}) == SCHEMAS


def test_no_two_of_the_mixed_requests_sample_alike() -> None:
    samplers = {
        (request.temperature, request.top_p, request.top_k, request.min_p, request.seed) for request in mixed(32, 1)
    }
    assert len(samplers) == 32


def test_its_context_can_be_longer(tmp_path: Path) -> None:
    model = random_model.write_model(tmp_path / "model")
    (tmp_path / "copy").mkdir()
    copy = without_end(model, tmp_path / "copy", context=100_000)
    assert json.loads((copy / "config.json").read_text())["max_position_embeddings"] == 100_000


def test_long_prompts_are_never_remembered() -> None:
    request = long(16384, 1)
    assert (len(request.prompt), request.cache) == (16384, "off")
    assert {request.cache for request in uncached(plain(3, 8))} == {"off"}


def test_the_measured_model_is_the_given_one_without_an_end(tmp_path: Path) -> None:
    model = random_model.write_model(tmp_path / "model")
    (tmp_path / "copy").mkdir()
    copy = without_end(model, tmp_path / "copy")
    assert (copy / "model.safetensors").read_bytes() == (model / "model.safetensors").read_bytes()
    assert "eos_token_id" in json.loads((model / "config.json").read_text())
    assert "eos_token_id" not in json.loads((copy / "config.json").read_text())
