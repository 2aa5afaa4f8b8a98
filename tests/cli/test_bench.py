"""`lmwire bench`, with counts too small for meaningful results: that it runs, and its report."""

import json
import sys
from itertools import pairwise
from pathlib import Path

import pytest

import random_model
import random_vision
from lmwire.cli import bench
from lmwire.cli.arguments import parse
from lmwire.cli.bench.benchmarks.agents import fewest_tokens, scenarios
from lmwire.cli.bench.benchmarks.http import STREAMS
from lmwire.cli.bench.pairing import extra_latency, latency_ratio, speed_ratio
from lmwire.cli.bench.programs.http_servers import PEERS
from lmwire.cli.bench.results import Result, format_line, format_table
from lmwire.cli.bench.workload import (
    SCHEMAS,
    copy_without_eos,
    greedy,
    ignoring_eos,
    long_prompt,
    mixed_samplers,
    structured,
    with_logprobs,
)
from lmwire.cli.errors import CliError
from support.nightly import nightly_but
from support.process.lmwire_command import lmwire
from support.process.worker_process import SECONDS

FEW = ("--tokens", "3", "--rounds", "1", "--json")
BENCH_S = 4 * SECONDS
"""Time limit of a benchmark, which starts many programs one after another."""
FIGURES = {
    "pipe": [
        "1 stream, against stream_generate",
        "8 streams, against BatchGenerator",
        "32 streams, against BatchGenerator",
        "8 streams of different lengths, against BatchGenerator",
        "prompt of 1,024 tokens alone, processor time, against stream_generate",
        "32 different samplers and seeds, against greedy",
        "spawn to hello answered, median",
        "cancel to terminal while decoding, 99th percentile",
        "engine without cost to Python client, against json.loads",
        *(
            f"{many} beside a device of {step_ms} ms a step, against it alone"
            for step_ms in (1, 5, 20)
            for many in ("1 stream", "32 streams")
        ),
    ],
    "generation": [
        "32 streams of JSON of 8 schemas, against plain ones",
        "32 streams with 5 log-probabilities, against plain ones",
        "32 streams, 1 of them with 5 log-probabilities, against plain ones",
        "1 stream of JSON of a schema, against a plain one, 512 tokens of vocabulary",
    ],
    "mixed": [
        "31 short streams beside one of 8192 tokens, against alone",
        "token gap of 8 streams while a prompt of 16384 tokens is processed, 99th percentile",
        "first token of that prompt beside 8 streams, against alone",
    ],
    "cache": [
        "first token of a prompt of 4096 tokens that is cached, against not",
        "a prompt of 32 tokens that 1000 entries do not know",
        "first token of such a prompt from disk after a restart, against not cached",
    ],
    "http": [
        *(f"{many} over HTTP, against the pipe" for many in STREAMS.values()),
        *(
            f"client that leaves {what} to its request cancelled, 99th percentile"
            for what in ("a stream", "a whole answer", "a prompt in work")
        ),
        *(
            f"{what}, against {peer}"
            for peer in PEERS
            for streams, many in STREAMS.items()
            for what in (
                many,
                f"first token of {many}, median",
                *([f"last first token of {many}"] if streams > 1 else []),
            )
        ),
    ],
    "ranks": [
        *(f"{streams}, 1 process against mlx_lm's plain loop" for streams in ("1 stream", "8 streams", "32 streams")),
        *(
            figure
            for streams in ("1 stream", "8 streams", "32 streams")
            for figure in (
                f"{streams}, 2 ranks against one process",
                f"{streams}, 2 ranks against mlx_lm's plain loop",
                f"exchanges of a step alone, {streams}, 2 ranks",
            )
        ),
        "first token of 4,096 tokens, 2 ranks",
        "weights of the largest rank of 2",
        "MLX's peak memory in the fullest rank of 2",
        "added to a step of builtin:tiny by 2 ranks",
        "record of a step, processor time",
    ],
    "agents": [
        f"{scenario}, {what}, against {peer}"
        for peer in PEERS
        for scenario in ("8 agents, 4 turns", "1 agent, 4 turns", "32 questions")
        for what in (
            "in all",
            "first token of the first turn",
            *([] if scenario == "32 questions" else ["first token of later turns"]),
            "tokens needed of those computed",
        )
    ],
    "vision": [
        "8 chats about images, against BatchGenerator",
        "first token of a second question about an image, against the first",
    ],
}


@pytest.mark.slow
@pytest.mark.parametrize("benchmark", nightly_but({"pipe"}, FIGURES))
def test_it_measures_every_figure(benchmark: str, tmp_path: Path) -> None:
    if benchmark == "vision":
        model = random_vision.write_vision_model(tmp_path)
    else:
        model = random_model.write_model(tmp_path, num_hidden_layers=1)  # one layer, so that a long prompt is quick
    options = ("--shared-tokens", "64") if benchmark == "agents" else ()
    result = lmwire("bench", benchmark, "--model", str(model), *FEW, *options, seconds=BENCH_S)
    assert result.returncode == 0, result.stderr
    report = json.loads(result.stdout)
    assert [figure["name"] for figure in report["figures"]] == FIGURES[benchmark]
    assert all(figure["value"] > 0 for figure in report["figures"] if figure["unit"] == "x")
    assert {"processor", "cores", "system", "python", "mlx", "mlx-lm"} <= set(report["machine"])


@pytest.mark.nightly
def test_the_start_is_measured_with_the_built_in_model() -> None:
    result = lmwire("bench", "start", *FEW, seconds=BENCH_S)
    assert result.returncode == 0, result.stderr
    helped, answered, processor, time, memory = json.loads(result.stdout)["figures"]
    assert helped["name"] == "lmwire --help, against import msgspec"
    assert answered["name"] == "lmwire chat -p hi, against mlx_lm.load of the same model"
    assert processor["name"] == "processor time to the first token of builtin:tiny, against import mlx_lm"
    assert time["name"] == "time to the first token of builtin:tiny, against import mlx_lm"
    assert (memory["name"], memory["unit"]) == ("memory of a worker with builtin:tiny that waits", "MB")
    assert all(figure["value"] > 0 for figure in (helped, answered, processor, time, memory))


@pytest.mark.nightly
def test_one_draft_is_always_right_and_the_other_never(tmp_path: Path) -> None:
    model = random_model.write_model(tmp_path, num_hidden_layers=3)
    result = lmwire("bench", "draft", "--model", str(model), *FEW, "--tokens", "20", seconds=BENCH_S)
    right, wrong, repeated, other = json.loads(result.stdout)["figures"]
    assert right["name"] == "1 stream with a draft of 1 of 3 layers that is always right, against without"
    assert wrong["name"] == "1 stream with a draft of 1 of 3 layers that never is, against without"
    assert right["detail"].endswith(", 16 of 20 tokens were proposed")
    assert wrong["detail"].endswith(", 0 of 20 tokens were proposed")
    assert repeated["name"] == "1 stream with proposals from a text that repeats itself, against without"
    assert other["name"] == "1 stream with proposals from a text that does not, against without"
    assert not repeated["detail"].endswith(", 0 of 20 tokens were proposed")


@pytest.mark.slow
def test_drafts_are_made_of_plain_transformers_only(tmp_path: Path) -> None:
    result = lmwire("bench", "draft", "--model", str(random_model.write_model(tmp_path, "mamba")))
    assert result.returncode == 64
    assert "does not have plain transformer layers" in result.stderr


@pytest.mark.slow
def test_a_folder_without_a_model_is_refused(tmp_path: Path) -> None:
    result = lmwire("bench", "pipe", "--model", str(tmp_path))
    assert result.returncode == 64
    assert "no config.json" in result.stderr


def test_servers_are_measured_only_if_uvloop_is_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvloop", None)
    for module in ("benchmarks.http", "programs.http_servers"):
        monkeypatch.delitem(sys.modules, f"lmwire.cli.bench.{module}")
    model = random_model.write_model(tmp_path)
    with pytest.raises(CliError, match=r"^uvloop is not installed; install it with `pip install 'lmwire\[http\]'`$"):
        bench.run(parse(["bench", "http", "--model", str(model)]))


def test_the_table_shows_which_results_pass() -> None:
    shown = format_table(
        [
            Result("fast enough", 0.98, "x", 0.95, "98 of 100 tok/s"),
            Result("too slow", 0.9, "x", 0.95, "90 of 100 tok/s"),
            Result("soon enough", 5, "ms", 60, "3 spawns"),
            Result("too late", 70, "ms", 60, "3 spawns"),
        ]
    ).splitlines()
    assert shown[1] == "fast enough  0.98x     ≥ 0.95x     pass  98 of 100 tok/s"
    assert [line.split()[-5] for line in shown[1:3]] == ["pass", "MISS"]
    assert [line.split()[-3] for line in shown[3:]] == ["pass", "MISS"]


def test_a_near_miss_does_not_look_like_its_target() -> None:
    figures = [Result("a", 0.8496, "x", 0.85, ""), Result("b", 0.85, "x", 0.85, ""), Result("c", 60.001, "ms", 60, "")]
    assert [line.split()[1:] for line in format_table(figures).splitlines()[1:]] == [
        ["0.8496x", "≥", "0.8500x", "MISS"],
        ["0.85x", "≥", "0.85x", "pass"],
        ["60.001", "ms", "≤", "60.000", "ms", "MISS"],
    ]


def test_the_median_of_several_turns_counts() -> None:
    pairs = [(100.0, 50.0), (80.0, 60.0), (100.0, 90.0)]
    assert speed_ratio("r", pairs, 0.7, "tok/s") == Result("r", 0.75, "x", 0.7, "60 of 80 tok/s", (0.5, 0.9), 60.0)
    assert latency_ratio("s", pairs, 0.7) == Result("s", 0.75, "x", 0.7, "16.7 instead of 12.5 ms", (0.5, 0.9))
    extra = extra_latency("e", [(1000.0, 500.0), (500.0, 200.0), (1000.0, 250.0)], 0.3, "a token")
    assert extra == Result("e", 3.0, "ms", 0.3, "4.00 instead of 1.00 ms a token", (1.0, 3.0))


def test_of_two_middle_turns_the_worse_counts() -> None:
    pairs = [(100.0, speed) for speed in (10.0, 90.0, 20.0, 50.0)]
    assert speed_ratio("r", pairs, 0.7, "tok/s").value == 0.2
    assert latency_ratio("s", pairs, 0.7).value == 0.2
    assert extra_latency("e", pairs, 0.7, "a token").value == pytest.approx(40)


def test_the_middle_half_of_the_turns_is_shown() -> None:
    figure = speed_ratio("r", [(100.0, speed) for speed in (40, 99, 90, 10, 80, 95, 92)], 0.9, "tok/s")
    assert figure.middle_half == (0.4, 0.95)
    assert format_line(figure) == "r: 0.90x, 90 of 100 tok/s; half of the rounds 0.40 to 0.95"
    assert format_table([figure]).endswith("pass  90 of 100 tok/s; half of the rounds 0.40 to 0.95")


def test_requests_are_compared_with_the_same_ones_without_the_extra() -> None:
    base = ignoring_eos(32, 8)
    for requests, asking in ((structured(32, 8), 32), (with_logprobs(base, 32), 32), (with_logprobs(base, 1), 1)):
        assert [(request.prompt, request.max_tokens, request.ignore_eos) for request in requests] == [
            (request.prompt, request.max_tokens, request.ignore_eos) for request in base
        ]
        assert sum(request != other for request, other in zip(requests, base, strict=True)) == asking
    assert len({str(request.format) for request in structured(32, 8)}) == SCHEMAS


def test_each_common_beginning_is_needed_once() -> None:
    assert fewest_tokens([[1, 2, 3, 4], [1, 2, 5], [1, 2, 3, 4, 6]]) == 4 + 1 + 1
    assert fewest_tokens([[1, 2, 3], [1, 2, 3]]) == 3 + 1  # the last token of a prompt is always computed
    assert fewest_tokens([[1, 2], [3, 4]]) == 4


def test_agents_share_their_beginning_and_continue_their_own_conversation() -> None:
    scenario, *_ = scenarios(64)
    agents = scenario.conversations("new", 1.0)
    assert len({turns[0][0]["content"] for turns in agents}) == 1
    assert len({turns[0][1]["content"] for turns in agents}) == len(agents)
    for turns in agents:
        assert all(turn[: len(before)] == before for before, turn in pairwise(turns))


def test_no_two_of_the_mixed_requests_sample_alike() -> None:
    samplers = {
        (request.temperature, request.top_p, request.top_k, request.min_p, request.seed)
        for request in mixed_samplers(32, 1)
    }
    assert len(samplers) == 32


def test_its_context_can_be_longer(tmp_path: Path) -> None:
    model = random_model.write_model(tmp_path / "model")
    (tmp_path / "copy").mkdir()
    copy = copy_without_eos(model, tmp_path / "copy", context=100_000)
    assert json.loads((copy / "config.json").read_text())["max_position_embeddings"] == 100_000


def test_requests_compared_with_a_program_without_a_cache_are_not_cached() -> None:
    requests = [long_prompt(16384, 1), *greedy(2, 8), *ignoring_eos(2, 8), *mixed_samplers(2, 8), *structured(2, 8)]
    assert {request.cache for request in requests} == {"off"}
    assert len(requests[0].prompt) == 16384


def test_the_measured_model_is_the_given_one_without_an_eos_token(tmp_path: Path) -> None:
    model = random_model.write_model(tmp_path / "model")
    (tmp_path / "copy").mkdir()
    copy = copy_without_eos(model, tmp_path / "copy")
    assert (copy / "model.safetensors").read_bytes() == (model / "model.safetensors").read_bytes()
    assert "eos_token_id" in json.loads((model / "config.json").read_text())
    assert "eos_token_id" not in json.loads((copy / "config.json").read_text())
