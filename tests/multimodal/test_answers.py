"""Answers about images: mlx-vlm's own, together as alone, with all that answers to texts have."""

from itertools import combinations
from pathlib import Path
from typing import Any, cast

import pytest
from msgspec.structs import replace

from lmwire_protocol import Chat, ChoiceFormat, Generate, RegexFormat, Tokenize
from lmwire_worker.generation.runner import GenerationRunner
from support.media.shown_images import expected, expected_steps, image, shown
from support.nightly import nightly_but
from support.runners.generation_runners import Answer, Driver, ask, ask_alone, choices, gather

pytestmark = pytest.mark.slow

ONE, OTHER, TALL = image(1), image(2), image(3, 64, 128)


def contents(*answers: Answer) -> list[tuple[object, ...]]:
    assert [answer.error for answer in answers] == [None] * len(answers)
    return [(answer.token_ids, answer.text, answer.finish_reason, answer.stop) for answer in answers]


QUESTIONS = {
    "no image": shown("What is new?", cache="off"),
    "one image": shown("What is on ", ONE, "?", cache="off"),
    "an image before the text": shown(TALL, "Describe it.", cache="off"),
    "two images": shown("Compare ", ONE, " and ", TALL, " well.", cache="off"),
    "the same image twice": shown(ONE, ONE, cache="off"),
}


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_greedy_answer_is_the_one_of_mlx_vlm(runner: GenerationRunner, folder: Path, question: str) -> None:
    request = replace(QUESTIONS[question], ignore_eos=False)
    (answer,) = ask(runner, request)
    tokens = expected(folder, request)
    assert answer.generated >= 1
    assert answer.token_ids == tokens[: len(answer.token_ids)]
    assert answer.finish_reason == "length" or tokens[len(answer.token_ids)] in runner.preparer.eos_token_ids


def test_log_probabilities_are_those_of_mlx_vlm_beside_a_row_that_asks_for_none(
    runner: GenerationRunner, folder: Path
) -> None:
    request = shown("What is on ", ONE, "?", cache="off", logprobs=True, top_logprobs=3, max_tokens=6)
    answer, other = ask(runner, request, shown(TALL, "Go on.", temperature=1))
    assert other.logprobs == []
    assert answer.generated >= 1
    for entry, (token, logprobs) in zip(answer.logprobs, expected_steps(folder, request), strict=False):
        assert (entry.token_id, entry.logprob) == (token, pytest.approx(logprobs[token], abs=1e-3))
        best = sorted(range(len(logprobs)), key=lambda token: -logprobs[token])[:3]
        assert [top.token_id for top in entry.top] == best


def test_the_answer_depends_on_each_image_and_on_their_order(runner: GenerationRunner) -> None:
    pairs = [(ONE, OTHER), (OTHER, ONE), (ONE, ONE), (TALL, OTHER)]
    requests = [shown("Compare ", *pair, " now.", ignore_eos=True, logprobs=True) for pair in pairs]
    answers = [[entry.logprob for entry in answer.logprobs] for answer in ask_alone(runner, *requests)]
    for one, other in combinations(answers, 2):
        assert one != pytest.approx(other, abs=1e-2)


REQUESTS = [
    shown("What is on ", ONE, "?"),
    shown("What is on ", OTHER, "?", temperature=0.8, seed=5),
    shown("No image here.", temperature=1, top_p=0.9),
    shown("Compare ", ONE, " and ", TALL, ".", temperature=0.7, repetition_penalty=1.3, frequency_penalty=0.4),
    shown(TALL, "What is it?", logprobs=True, top_logprobs=3),
    shown(OTHER, "Yes or no?", format=ChoiceFormat(choices=["yes", "no"])),
    shown("A number for ", ONE, format=RegexFormat(pattern="[0-9]{4}"), temperature=1),
    Generate(prompt="It was a", max_tokens=12),
    shown("What is on ", ONE, "?", n=2, temperature=0.9),
    shown(ONE, "Go on.", min_tokens=8, stop=["a"]),
]


@pytest.mark.parametrize(("mode", "turned"), [("off", False), ("on", True)])
def test_answers_given_together_are_those_given_alone(runner: GenerationRunner, mode: str, turned: bool) -> None:
    requests = [replace(request, cache=mode) for request in REQUESTS]
    seeds = range(len(requests))
    alone = ask_alone(runner, *requests, seeds=seeds)
    order = list(seeds)[::-1] if turned else list(seeds)
    together = ask(runner, *(requests[index] for index in order), seeds=order)
    assert contents(*together) == contents(*(alone[index] for index in order))
    assert alone[5].text in ("yes", "no")
    assert alone[6].text.isdigit()
    assert len(alone[4].logprobs) == len(alone[4].token_ids)


@pytest.mark.parametrize("family", nightly_but({"gemma3"}, ["qwen2_5_vl", "gemma3"]))
def test_requests_may_come_while_others_are_answered(runner: GenerationRunner) -> None:
    requests = [replace(request, cache="off") for request in REQUESTS]
    alone = ask_alone(runner, *requests)
    driver = Driver(runner)
    for key, request in enumerate(requests):
        driver.add(key, request)
        driver.steps(2)
    assert contents(*driver.finish().values()) == contents(*alone)


def test_a_prompt_may_be_cut_anywhere(runner: GenerationRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    requests = [replace(request, cache="off") for request in REQUESTS[:4]]
    whole = ask(runner, *requests)
    monkeypatch.setattr(runner.policy, "chunk_size", lambda *_: 3)
    assert contents(*ask(runner, *requests)) == contents(*whole)


def test_each_choice_is_the_answer_with_its_own_seed(runner: GenerationRunner) -> None:
    request = shown("What is on ", TALL, "?", temperature=1)
    alone = ask_alone(runner, request, request, request, seeds=[7, 8, 9])
    assert contents(*choices(runner, replace(request, n=3, cache="off"), seed=7)) == contents(*alone)


def test_a_prompt_is_processed_alone_when_no_tokens_are_asked_for(runner: GenerationRunner) -> None:
    (answer,) = ask(runner, shown(ONE, "What?", max_tokens=0))
    assert (answer.finish_reason, answer.generated) == ("length", 0)
    done, total = answer.prefilled[-1]
    assert done == total


def test_a_template_that_knows_no_parts_gets_images_in_the_text(runner: GenerationRunner) -> None:
    template = "{% for message in messages %}{{ message.content }}\n{% endfor %}Answer:"
    one, other = ask(runner, *(shown("What is on ", part, "?", chat_template=template) for part in (ONE, OTHER)))
    assert one.error is other.error is None
    assert one.token_ids != other.token_ids


def test_tokenize_returns_the_placeholder_tokens(runner: GenerationRunner) -> None:
    request = shown("What is on ", ONE, " and ", TALL, "?")
    tokenize = Tokenize(messages=request.messages)
    tokens, text = runner.tokenize(tokenize, gather(runner, tokenize))
    admitted = runner.add(0, request, 0, prepared=gather(runner, request))
    runner.remove(0)
    assert len(tokens) == admitted.prompt_tokens
    assert runner.media is not None
    assert tokens.count(cast(Any, runner.media).inputs.modalities["image"].placeholder_token) >= 8
    assert "What is on " in text


def test_a_request_may_end_while_its_images_are_processed(
    runner: GenerationRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner.policy, "chunk_size", lambda *_: 2)
    uncached = [replace(REQUESTS[index], cache="off") for index in (0, 3)]
    alone = ask(runner, *uncached)
    driver = Driver(runner)
    driver.add(0, uncached[0])
    driver.add(1, shown("Never mind ", TALL, n=2, cache="off"))
    driver.add(2, uncached[1])
    for step in range(60):
        if step == 5:
            assert runner.table.solo
        if step == 20 and 1 in driver.running:
            assert driver.remove(1).generated == 0
        driver.step()
        if not driver.running:
            break
    driver.finish()
    assert contents(driver.answers[0], driver.answers[2]) == contents(*alone)
    assert not runner.table.solo


@pytest.mark.parametrize("step", ["prefill", "decode"])
def test_after_a_failure_in_a_step_rows_with_images_go_on_where_they_were(
    runner: GenerationRunner, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    requests: list[Chat | Generate] = [replace(request, cache="off") for request in REQUESTS[:5]]
    alone = ask_alone(runner, *requests)
    driver = Driver(runner)
    for key, request in enumerate(requests):
        driver.add(key, request)
    driver.steps(12)
    driver.add(5, shown("A late question, without an image.", cache="off"))
    generator, fails = runner.batch, iter([True])
    does = getattr(generator, step)

    def fail_once(*args: object) -> object:
        if next(fails, False):
            raise RuntimeError("the device is gone for a moment")
        return does(*args)

    monkeypatch.setattr(generator, step, fail_once)
    *answers, _ = driver.finish().values()
    assert next(fails, "none left") == "none left"
    assert contents(*answers) == contents(*alone)


def test_an_encoder_that_fails_ends_its_own_request(runner: GenerationRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    (alone,) = ask(runner, shown("Text only."))
    network = runner.network
    assert network is not None

    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("no such kernel")

    driver = Driver(runner)
    driver.add(0, shown(image(77), "What is it?"))
    driver.add(1, shown("Text only."))
    with monkeypatch.context() as patch:
        patch.setattr(type(network.model), "get_input_embeddings", fail)
        driver.finish()
    assert driver.answers[0].error is not None
    assert driver.answers[0].error.code == "engine_error"
    assert "no such kernel" in driver.answers[0].error.message
    assert contents(driver.answers[1]) == contents(alone)
