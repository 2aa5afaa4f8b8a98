"""Answers given together are those that mlx-lm gives alone."""

import json
import random
from pathlib import Path
from typing import Literal

import pytest
from tokenizers import Tokenizer
from tokenizers.processors import TemplateProcessing

from lmwire_protocol import Chat, Generate, Message, TextPart
from lmwire_worker.generation.prefill_policy import PrefillPolicy
from lmwire_worker.prompts.truncation import truncate_prompt
from random_model import write_model
from support.nightly import nightly_but
from support.runners.generation_runners import (
    EACH_FAMILY,
    Driver,
    FolderOf,
    RunnerOf,
    ask,
    ask_alone,
    chat,
    expected,
    open_runner,
    stock,
)

pytestmark = pytest.mark.slow


def varied(number: int) -> Generate | Chat:
    """The nth of many requests: prompts of 1 to some 250 tokens, answers of 1 to 30."""
    chance = random.Random(number)
    text = "".join(chance.choice("abcdefgh \n") for _ in range(chance.choice([1, 5, 40, 120, 250])))
    limit = chance.randint(1, 30)
    return chat(text, max_tokens=limit) if number % 3 else Generate(prompt=text, max_tokens=limit)


@pytest.mark.parametrize("family", EACH_FAMILY)
def test_requests_that_join_and_leave_at_any_time_get_what_they_get_alone(
    family: str, runner_of: RunnerOf, folder_of: FolderOf
) -> None:
    requests = {key: varied(key) for key in range(12)}
    driver = Driver(runner_of(family))
    chance = random.Random(family)
    for key, request in requests.items():
        driver.add(key, request)
        driver.steps(chance.choice([0, 1, 1, 2, 9]))
    for key, answer in driver.finish().items():
        alone = expected(folder_of(family), requests[key])
        assert answer.token_ids == alone.token_ids
        assert (answer.generated, answer.finish_reason) == (alone.generated, alone.finish_reason)
        if isinstance(requests[key], Chat):
            assert answer.text == alone.text


def test_a_prompt_of_text_is_continued_space_and_all(runner_of: RunnerOf, folder_of: FolderOf) -> None:
    _, tokenizer = stock(folder_of("qwen3"))
    prompts = ["ka", "ma lo", "text", "vu vu"]
    answers = ask(runner_of("qwen3"), *(Generate(prompt=prompt, max_tokens=30) for prompt in prompts))
    for prompt, answer in zip(prompts, answers, strict=True):
        assert prompt + answer.text == tokenizer.decode(tokenizer.encode(prompt) + answer.token_ids)


def test_prompts_of_one_token_and_of_many_start_together(runner_of: RunnerOf, folder_of: FolderOf) -> None:
    requests = [Generate(prompt=[300] * length, max_tokens=9) for length in (1, 40, 2, 1, 7)]
    for request, answer in zip(requests, ask(runner_of("qwen3"), *requests), strict=True):
        assert answer.token_ids == expected(folder_of("qwen3"), request).token_ids


def test_a_prompt_that_brings_its_beginning_of_text_token_gets_no_second_one(tmp_path: Path) -> None:
    folder = write_model(tmp_path / "model")
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    begin = tokenizer.token_to_id("<|endoftext|>")
    tokenizer.post_processor = TemplateProcessing(single="<|endoftext|> $A", special_tokens=[("<|endoftext|>", begin)])
    tokenizer.save(str(folder / "tokenizer.json"))
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    (folder / "tokenizer_config.json").write_text(json.dumps(settings | {"bos_token": "<|endoftext|>"}))

    runner = open_runner(folder)
    plain, with_token = Generate(prompt="ka", max_tokens=0), Generate(prompt="<|endoftext|>ka", max_tokens=0)
    assert [answer.prefilled[-1] for answer in ask(runner, plain, with_token)] == [(2, 2), (2, 2)]


def test_a_message_in_parts_is_their_text(runner_of: RunnerOf) -> None:
    parts = Chat(messages=[Message(role="user", content=[TextPart("one "), TextPart("two")])], max_tokens=8)
    in_parts, whole = ask(runner_of("qwen3"), parts, chat("one two", max_tokens=8))
    assert in_parts == whole


def test_exactly_max_tokens_are_generated(tmp_path: Path) -> None:
    runner = open_runner(write_model(tmp_path / "model", end_scale=0))
    limits = (1, 2, 33)
    for limit, answer in zip(limits, ask(runner, *(chat("hello", max_tokens=limit) for limit in limits)), strict=True):
        assert (len(answer.token_ids), answer.generated, answer.finish_reason) == (limit, limit, "length")


def test_max_tokens_0_processes_the_prompt_only(runner_of: RunnerOf) -> None:
    (answer,) = ask(runner_of("qwen3"), Generate(prompt=[1] * 100, max_tokens=0))
    assert answer.prefilled[-1] == (100, 100)
    assert (answer.text, answer.token_ids, answer.generated, answer.finish_reason) == ("", [], 0, "length")


def test_without_max_tokens_an_answer_fills_the_context(tmp_path: Path) -> None:
    runner = open_runner(write_model(tmp_path / "model", end_scale=0, max_position_embeddings=64))
    answers = ask(
        runner, Generate(prompt=[1] * 60), Generate(prompt=[1] * 60, max_tokens=99), Generate(prompt=[1] * 64)
    )
    assert [(answer.generated, answer.finish_reason) for answer in answers] == [(4, "length")] * 2 + [(0, "length")]


def test_an_end_of_turn_token_is_counted_and_not_shown(runner_of: RunnerOf) -> None:
    answers = ask(runner_of("mamba"), *(chat(f"question {n}", max_tokens=300) for n in range(8)))
    ended = [answer for answer in answers if answer.finish_reason == "stop"]
    assert ended, "the model should end a turn now and then"
    for answer in ended:
        assert answer.generated == len(answer.token_ids) + 1
        assert "<|im_end|>" not in answer.text


def test_progress_of_a_long_prompt_rises_to_its_length(runner_of: RunnerOf, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PrefillPolicy, "chunk_size", lambda *_: 512)  # a fast machine would need one chunk
    runner = runner_of("qwen3")
    (answer,) = ask(runner, Generate(prompt=[1] * 2500, max_tokens=1))
    done = [current for current, _ in answer.prefilled]
    assert done == sorted(done) and len(done) > 2
    assert answer.prefilled[-1] == (2500, 2500)


@pytest.mark.parametrize("family", nightly_but({"gemma3_text", "qwen3_next"}, ["qwen3", "gemma3_text", "qwen3_next"]))
def test_removing_a_request_in_any_state_leaves_the_others_as_they_were(
    family: str, runner_of: RunnerOf, folder_of: FolderOf
) -> None:
    """Queued, in the middle of its prompt, in the middle of its answer, and so that one or none remain."""
    request = chat("a neighbour", max_tokens=25)
    alone = expected(folder_of(family), request)
    for steps in (0, 1, 2, 3, 6, 15):
        driver = Driver(runner_of(family))
        driver.add(1, request)
        for key in (2, 3):
            driver.add(key, Generate(prompt=[key] * (30 * key), max_tokens=100))
        driver.steps(steps)
        driver.remove(2)
        driver.steps(2)
        if 3 in driver.running:
            driver.remove(3)
        assert driver.finish()[1].token_ids == alone.token_ids


def test_the_runner_is_ready_after_the_last_request_is_removed(runner_of: RunnerOf) -> None:
    driver = Driver(runner_of("qwen3"))
    driver.add(1, chat("hello"))
    driver.remove(1)
    assert ask(driver.runner, chat("again", max_tokens=3))[0].generated


def test_removing_a_request_returns_the_text_that_was_held_back(runner_of: RunnerOf) -> None:
    runner = runner_of("qwen3")
    (whole,) = ask(runner, chat("hello", max_tokens=6))
    driver = Driver(runner)
    driver.add(1, chat("hello", max_tokens=99, stop=[whole.text + "\0never"]))
    while len(driver.answers[1].token_ids) < 6:
        driver.step()
    assert driver.answers[1].text == ""
    assert driver.remove(1).text == whole.text


def test_a_stop_string_ends_the_answer_before_it(runner_of: RunnerOf) -> None:
    runner = runner_of("qwen3")
    (whole,) = ask(runner, chat("hello", max_tokens=40))
    stop = whole.text[11:18]
    before = whole.text[: whole.text.index(stop)]
    stopped, other = ask(runner, chat("hello", max_tokens=40, stop=[stop]), chat("hello", max_tokens=40))
    assert (stopped.text, stopped.finish_reason, stopped.stop) == (before, "stop", stop)
    assert stopped.token_ids == whole.token_ids[: stopped.generated]
    assert other == whole


def test_text_held_for_a_stop_string_comes_when_the_answer_ends_by_itself(runner_of: RunnerOf) -> None:
    runner = runner_of("qwen3")
    (whole,) = ask(runner, chat("hello", max_tokens=20))
    (withheld,) = ask(runner, chat("hello", max_tokens=20, stop=[whole.text[-9:] + "\0never"]))
    assert (withheld.text, withheld.finish_reason, withheld.stop) == (whole.text, "length", None)


@pytest.mark.parametrize("truncate", ["left", "middle"])
def test_a_truncated_prompt_gets_the_answer_of_the_remaining_prompt(
    folder_of: FolderOf, truncate: Literal["left", "middle"]
) -> None:
    context = 400
    runner = open_runner(folder_of("llama"), context_len=context)
    long = [7 + place % 90 for place in range(context + 50)]
    truncated = Generate(
        prompt=truncate_prompt(Generate(prompt=long, truncate=truncate, max_tokens=6), long, context), max_tokens=6
    )
    cut, alone = ask_alone(runner, Generate(prompt=long, truncate=truncate, max_tokens=6), truncated)
    assert cut.prefilled[-1][1] == context - 6
    assert (cut.token_ids, cut.finish_reason) == (alone.token_ids, alone.finish_reason)
