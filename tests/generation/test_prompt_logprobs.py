"""Log-probabilities of prompts: those of mlx-lm's own pass, in chunks, whatever is cached."""

from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
import pytest

from lmwire_protocol import Generate, RequestError, limits
from lmwire_protocol.events import Logprob
from lmwire_worker.engine.interface import TokenDelta
from lmwire_worker.generation import solo_prefill
from lmwire_worker.generation.prefill_policy import PrefillPolicy
from lmwire_worker.generation.runner import GenerationRunner
from random_model import write_model
from support.process.worker_thread import RealOnThread
from support.runners.generation_runners import EACH_FAMILY, FolderOf, RunnerOf, ask, open_runner, stock

pytestmark = pytest.mark.slow

PROMPT = [(7 * place + place * place) % 400 for place in range(90)]


def scored(runner: GenerationRunner, **fields: Any) -> tuple[list[Logprob], int, str]:
    """Return a prompt's log-probabilities, the cached tokens, and the answer's text."""
    fields = {"prompt": PROMPT, "prompt_logprobs": True, "max_tokens": 0, **fields}
    request = Generate(**fields)
    admitted = runner.add(0, request, 0)
    found: list[Logprob] = []
    text = ""
    ended = 0
    while ended < request.n:
        for event in runner.step():
            if isinstance(event, TokenDelta):
                found += event.prompt_logprobs or []
                text += event.text
                ended += event.finish_reason is not None
    return found, admitted.cached_tokens, text


def of_mlx_lm(folder: Path, prompt: list[int]) -> Any:
    """Return the logarithms of the probabilities [N, V] after each token, computed in one pass."""
    model, _ = stock(folder)
    logits = np.array(model(mx.array([prompt]))[0].astype(mx.float32)).astype(np.float64)
    return (
        logits
        - np.log(np.exp(logits - logits.max(-1, keepdims=True)).sum(-1, keepdims=True))
        - logits.max(-1, keepdims=True)
    )


@pytest.mark.parametrize("family", EACH_FAMILY)
def test_they_are_those_of_mlx_lm(
    family: str, folder_of: FolderOf, runner_of: RunnerOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(solo_prefill, "MAX_LOGITS_BYTES", 4 * 512 * 7)  # seven tokens in a chunk
    found, _, _ = scored(runner_of(family), logprobs=True, top_logprobs=3)
    expected = of_mlx_lm(folder_of(family), PROMPT)
    assert [logprob.token_id for logprob in found] == PROMPT
    assert (found[0].logprob, found[0].top) == (None, [])
    for place, logprob in enumerate(found[1:]):
        assert logprob.logprob == pytest.approx(expected[place, PROMPT[place + 1]], abs=2e-3)
        assert [top.logprob for top in logprob.top] == pytest.approx(np.sort(expected[place])[::-1][:3], abs=2e-3)


def test_no_chunk_has_more_logits_than_the_limit(runner_of: RunnerOf, monkeypatch: pytest.MonkeyPatch) -> None:
    lengths: list[int] = []
    monkeypatch.setattr(PrefillPolicy, "chunk_size", lambda *_: 64)  # a busy machine would have shorter chunks
    plain = solo_prefill.score_tokens
    monkeypatch.setattr(solo_prefill, "MAX_LOGITS_BYTES", 4 * 512 * 7)
    monkeypatch.setattr(
        solo_prefill, "score_tokens", lambda logits, *rest: (lengths.append(len(logits)), plain(logits, *rest))[1]
    )
    scored(runner_of("llama"))
    assert max(lengths) == 7
    assert sum(lengths) == len(PROMPT) - 1


def test_a_cached_prompt_is_computed_again(runner_of: RunnerOf) -> None:
    runner = runner_of("qwen3")
    (plain,) = ask(runner, Generate(prompt=PROMPT, max_tokens=8))
    first, again = scored(runner, max_tokens=8), scored(runner, max_tokens=8)
    assert first == again
    assert first[1:] == (0, plain.text)


def test_a_scored_prompt_is_cached_for_others(folder_of: FolderOf) -> None:
    runner = open_runner(folder_of("qwen3"))
    scored(runner)
    admitted = runner.add(1, Generate(prompt=PROMPT, max_tokens=0), 0)
    while not any(isinstance(event, TokenDelta) and event.finish_reason for event in runner.step()):
        pass
    assert admitted.cached_tokens == len(PROMPT) - 1


def test_several_answers_have_one_prompt(runner_of: RunnerOf) -> None:
    found, _, text = scored(runner_of("qwen3"), n=3, max_tokens=4, ignore_eos=True)
    assert len(found) == len(PROMPT)
    assert text


def test_a_prompt_of_one_token_has_no_logprob(runner_of: RunnerOf) -> None:
    found, _, text = scored(runner_of("qwen3"), prompt=[5], max_tokens=3, ignore_eos=True)
    assert [(logprob.token_id, logprob.logprob) for logprob in found] == [(5, None)]
    assert text == ask(runner_of("qwen3"), Generate(prompt=[5], max_tokens=3, ignore_eos=True))[0].text


def test_a_draft_model_does_not_change_them(folder_of: FolderOf, runner_of: RunnerOf) -> None:
    folder = folder_of("qwen3")
    drafted, _, text = scored(open_runner(folder, draft_path=str(folder)), max_tokens=6, ignore_eos=True)
    plain, _, expected = scored(runner_of("qwen3"), max_tokens=6, ignore_eos=True)
    assert [logprob.logprob for logprob in drafted[1:]] == pytest.approx([logprob.logprob for logprob in plain[1:]])
    assert text == expected


def test_other_requests_run_beside_it(runner_of: RunnerOf) -> None:
    runner = runner_of("qwen3")
    other = Generate(prompt=PROMPT[:40], max_tokens=12)
    (alone,) = ask(runner, other)
    beside, _ = ask(runner, other, Generate(prompt=PROMPT, prompt_logprobs=True, max_tokens=4))
    assert beside == alone


def test_a_prompt_beyond_the_limit_is_refused(runner_of: RunnerOf, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "PROMPT_LOGPROBS", len(PROMPT) - 1)
    with pytest.raises(RequestError) as error:
        scored(runner_of("qwen3"))
    assert (error.value.code, error.value.field) == ("invalid_request", "prompt_logprobs")


def test_a_worker_sends_them_in_events_without_text(tmp_path: Path) -> None:
    with RealOnThread() as worker:
        assert (
            worker.call({"id": "load", "cmd": "load", "path": str(write_model(tmp_path / "model"))})["event"] == "done"
        )
        request = {"id": "a", "cmd": "generate", "prompt": PROMPT, "prompt_logprobs": True, "max_tokens": 0}
        ended = worker.call({**request, "logprobs": True, "top_logprobs": 20})
        assert ended["usage"] == {"prompt_tokens": len(PROMPT), "cached_tokens": 0, "completion_tokens": 0}
        tokens = [event for event in worker.events if event.get("id") == "a" and event["event"] == "token"]
        assert all((event["token"], event["token_ids"]) == ("", []) for event in tokens)
        found = [logprob for event in tokens for logprob in event["prompt_logprobs"]]
        assert [logprob["token_id"] for logprob in found] == PROMPT
        assert [len(logprob.get("top", ())) for logprob in found] == [0, *[20] * (len(PROMPT) - 1)]
