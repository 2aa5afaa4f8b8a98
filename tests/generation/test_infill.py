"""Gaps that a real model fills: its prompt, its ends, its cache."""

from pathlib import Path
from typing import Any

import pytest
from mlx_lm.tokenizer_utils import load

from lmwire_protocol import ContextFile, Generate
from lmwire_worker.engine.interface import TokenDelta
from lmwire_worker.generation.runner import GenerationRunner
from support.models.infill_tokenizers import QWEN, write_infill_model
from support.process.worker_thread import RealOnThread
from support.runners.generation_runners import ask, expected, open_runner

pytestmark = pytest.mark.slow

BEFORE, AFTER = "ka lo mi", " pa su"
FILES = [ContextFile(name="a.py", text="ru se ti " * 40)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_infill_model(tmp_path_factory.mktemp("infill") / "model")


@pytest.fixture(scope="module")
def runner(folder: Path) -> GenerationRunner:
    return open_runner(folder)


@pytest.fixture(scope="module")
def tokenizer(folder: Path) -> Any:
    return load(folder)


def test_a_gap_is_filled_as_mlx_lm_continues_the_familys_prompt(folder: Path, runner: GenerationRunner) -> None:
    prompt = f"<|fim_prefix|>{BEFORE}<|fim_suffix|>{AFTER}<|fim_middle|>"
    (answer,) = ask(runner, Generate(prompt=BEFORE, suffix=AFTER, max_tokens=12))
    assert answer.token_ids == expected(folder, Generate(prompt=prompt, max_tokens=12)).token_ids != []


def test_the_model_reports_that_it_fills_gaps(runner: GenerationRunner) -> None:
    assert runner.model.capabilities == ["generate", "chat", "tokenize", "suffix"]


@pytest.mark.parametrize("name", [*QWEN, "<|endoftext|>", "<|im_end|>"])
def test_each_of_the_familys_tokens_ends_a_gap_and_no_other_text(
    runner: GenerationRunner, tokenizer: Any, name: str
) -> None:
    token = tokenizer.convert_tokens_to_ids(name)
    fields: dict[str, Any] = {"max_tokens": 3, "logit_bias": {token: 100.0}}
    gap, plain = ask(runner, Generate(prompt=BEFORE, suffix=AFTER, **fields), Generate(prompt=BEFORE, **fields))
    assert (gap.text, gap.finish_reason, gap.generated) == ("", "stop", 1)
    assert plain.finish_reason == ("stop" if name == "<|im_end|>" else "length")


def test_a_gap_goes_on_where_its_end_is_forbidden(runner: GenerationRunner, tokenizer: Any) -> None:
    token = tokenizer.convert_tokens_to_ids("<|file_sep|>")
    longer: list[dict[str, Any]] = [{"ignore_eos": True}, {"min_tokens": 4}]
    for fields in longer:
        request = Generate(prompt=BEFORE, suffix=AFTER, max_tokens=4, logit_bias={token: 50.0}, **fields)
        (answer,) = ask(runner, request)
        assert (len(answer.token_ids), answer.finish_reason) == (4, "length")
        assert token not in answer.token_ids


def test_the_other_files_come_from_the_cache_the_next_time(runner: GenerationRunner) -> None:
    cached: list[int] = []
    for before in ("ka", "ka lo"):
        request = Generate(prompt=before, suffix=AFTER, context_files=FILES, max_tokens=0)
        admitted = runner.add(0, request, 0)
        while not any(isinstance(event, TokenDelta) and event.finish_reason for event in runner.step()):
            pass
        cached.append(admitted.cached_tokens)
    assert cached[0] == 0 < cached[1]


def test_a_worker_fills_a_gap_and_says_so(folder: Path) -> None:
    with RealOnThread() as worker:
        features = worker.call({"id": "hello", "cmd": "hello"})["features"]
        assert {"generate.suffix", "generate.context_files"} <= {*features}
        assert "suffix" in worker.call({"id": "load", "cmd": "load", "path": str(folder)})["capabilities"]
        files = [{"name": "a.py", "text": "ru"}]
        ended = worker.call(
            {"id": "a", "cmd": "generate", "prompt": BEFORE, "suffix": AFTER, "context_files": files, "max_tokens": 4}
        )
        assert ended["event"] == "done"
        assert (
            ended["usage"]["prompt_tokens"]
            > worker.call({"id": "b", "cmd": "generate", "prompt": BEFORE, "suffix": AFTER, "max_tokens": 4})["usage"][
                "prompt_tokens"
            ]
        )
