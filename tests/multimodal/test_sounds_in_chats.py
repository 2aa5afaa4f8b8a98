"""Answers about sounds: mlx-vlm's own, together as alone, from what is cached as from nothing."""

from itertools import combinations
from pathlib import Path
from typing import Any, cast

import pytest
from msgspec.structs import replace

from lmwire_protocol import Chat, ChoiceFormat, Generate, ImagePart, Media, Message, RequestError, Tokenize
from lmwire_worker.generation.runner import GenerationRunner
from random_vision import HEARING
from support.media.reading_media import TONES
from support.media.shown_images import Part, answered, expected, image, image_of, said, shown, sound, sound_of
from support.nightly import nightly_but
from support.runners.generation_runners import Answer, Driver, ask, ask_alone, gather

pytestmark = pytest.mark.slow

ONE, OTHER, LONG = sound(1), sound(2), sound(3, 2.5)
IMAGE = image(1)


@pytest.fixture(params=nightly_but({"gemma4"}, HEARING))
def family(request: pytest.FixtureRequest) -> str:
    return request.param


def contents(*answers: Answer) -> list[tuple[object, ...]]:
    assert [answer.error for answer in answers] == [None] * len(answers)
    return [(answer.token_ids, answer.text, answer.finish_reason, answer.stop) for answer in answers]


def cold(request: Chat) -> Chat:
    return replace(request, cache="off")


def refused(runner: GenerationRunner, *parts: Part, **fields: object) -> RequestError:
    request = shown(*parts, **fields)
    with pytest.raises(RequestError) as error:
        runner.add(0, request, 0, prepared=gather(runner, request))
    assert ask(runner, shown("Well?"))[0].error is None
    return error.value


def test_an_audio_model_reports_sounds_as_input(runner: GenerationRunner) -> None:
    assert runner.model.capabilities == ["generate", "chat", "tokenize", "images", "sounds"]
    assert runner.max_batch_size > 1


QUESTIONS = {
    "one sound": shown("What is said in ", ONE, "?", cache="off"),
    "a sound before the text": shown(LONG, "Write it down.", cache="off"),
    "two sounds": shown("Compare ", ONE, " and ", OTHER, " well.", cache="off"),
    "the same sound twice": shown(ONE, ONE, cache="off"),
    "a sound and an image": shown(ONE, "Is it about ", IMAGE, "?", cache="off"),
    "an image and a sound in turns": Chat(
        messages=[
            said("What is on ", IMAGE, "?"),
            Message(role="assistant", content="A bird."),
            said("And is this ", ONE, " its song?"),
        ],
        max_tokens=12,
        cache="off",
    ),
    "a sound at another rate": shown("What is said in ", sound(4, 0.96, 44_100), "?", cache="off"),
    "a FLAC": shown(sound_of((TONES / "tone.flac").read_bytes()), "What is it?", cache="off"),
}


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_greedy_answer_is_the_one_of_mlx_vlm(runner: GenerationRunner, folder: Path, question: str) -> None:
    request = QUESTIONS[question]
    (answer,) = ask(runner, request)
    tokens = expected(folder, request)
    assert answer.generated >= 1
    assert answer.token_ids == tokens[: len(answer.token_ids)]
    assert answer.finish_reason == "length" or tokens[len(answer.token_ids)] in runner.preparer.eos_token_ids


def test_the_answer_depends_on_each_sound_and_on_their_order(runner: GenerationRunner) -> None:
    pairs = [(ONE, OTHER), (OTHER, ONE), (ONE, ONE), (LONG, OTHER), (IMAGE, ONE), (ONE, IMAGE)]
    requests = [shown("Compare ", *pair, " now.", ignore_eos=True, logprobs=True) for pair in pairs]
    answers = [[entry.logprob for entry in answer.logprobs] for answer in ask_alone(runner, *requests)]
    for one, other in combinations(answers, 2):
        assert one != pytest.approx(other, abs=1e-2)


REQUESTS: list[Chat | Generate] = [
    shown("What is said in ", ONE, "?"),
    shown("What is said in ", OTHER, "?", temperature=0.8, seed=5),
    shown("No sound here.", temperature=1, top_p=0.9),
    shown("What is on ", IMAGE, "?"),
    shown("Is ", IMAGE, " about ", LONG, " or ", ONE, "?", temperature=0.7, repetition_penalty=1.3),
    shown(OTHER, "Yes or no?", format=ChoiceFormat(choices=["yes", "no"])),
    Generate(prompt="It was a", max_tokens=12),
    shown("What is said in ", LONG, "?", n=2, temperature=0.9),
]


@pytest.mark.parametrize("mode", nightly_but({"off"}, ["off", "on"]))
def test_answers_given_together_are_those_given_alone(runner: GenerationRunner, mode: str) -> None:
    requests = [replace(request, cache=mode) for request in REQUESTS]
    seeds = range(len(requests))
    alone = ask_alone(runner, *requests, seeds=seeds)
    order = list(seeds)[::-1]
    together = ask(runner, *(requests[index] for index in order), seeds=order)
    assert contents(*together) == contents(*(alone[index] for index in order))
    assert alone[5].text in ("yes", "no")


@pytest.mark.nightly  # test_answers.py shows it of images
def test_a_prompt_may_be_cut_anywhere(runner: GenerationRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    requests = [replace(request, cache="off") for request in REQUESTS[:5]]
    whole = ask(runner, *requests)
    monkeypatch.setattr(runner.policy, "chunk_size", lambda *_: 3)
    assert contents(*ask(runner, *requests)) == contents(*whole)


def test_a_conversation_goes_on_as_if_nothing_were_cached(runner: GenerationRunner, encoded: list[bytes]) -> None:
    messages = shown("What is said in ", ONE, "?").messages
    for turn, more in enumerate(["Who says it?", OTHER, IMAGE]):
        request = Chat(messages=messages, max_tokens=10)
        (warm,) = ask(runner, request)
        assert len(encoded) == (turn != 1), "what was heard and seen before was encoded before"
        (computed,) = ask(runner, cold(request))
        encoded.clear()
        assert contents(warm) == contents(computed)
        messages = answered(request, warm, "And then ", more, "?")


def test_another_question_about_a_sound_needs_neither_encoder_nor_prefill_of_it(
    runner: GenerationRunner, encoded: list[bytes]
) -> None:
    ask(runner, shown(ONE, "What is it?"))
    question = shown(ONE, "How old is it?")
    admitted = runner.add(99, question, 0, prepared=gather(runner, question))
    runner.start_waiting()
    runner.remove(99)
    tokenize = Tokenize(messages=question.messages)
    tokens, _ = runner.tokenize(tokenize, gather(runner, tokenize))
    assert runner.media is not None
    last = len(tokens) - 1 - tokens[::-1].index(cast(Any, runner.media).inputs.modalities["sound"].placeholder_token)
    assert last < admitted.cached_tokens < admitted.prompt_tokens == len(tokens)
    (warm,) = ask(runner, question)
    assert len(encoded) == 1
    assert contents(warm) == contents(*ask(runner, cold(question)))


@pytest.mark.nightly  # test_cached_images.py shows it of images
def test_conversations_on_different_sounds_take_turns_and_do_not_mix(runner: GenerationRunner) -> None:
    sounds = {0: ONE, 1: OTHER, 2: LONG}
    alone = {key: _talk(runner, part) for key, part in sounds.items()}
    runner.clear_cache()
    talks = {key: [said("What is said in ", part, "?")] for key, part in sounds.items()}
    for turn in range(3):
        driver = Driver(runner)
        for key, messages in talks.items():
            driver.add(key, Chat(messages=messages, max_tokens=8))
            driver.step()
        for key, answer in driver.finish().items():
            assert answer.text == alone[key][turn]
            talks[key] += [Message(role="assistant", content=answer.text), said(f"More, {turn}.")]


def _talk(runner: GenerationRunner, part: Part) -> list[str]:
    """A conversation's answers, computed from nothing."""
    messages = [said("What is said in ", part, "?")]
    texts: list[str] = []
    for turn in range(3):
        (answer,) = ask(runner, Chat(messages=messages, max_tokens=8, cache="off"))
        texts.append(answer.text)
        messages += [Message(role="assistant", content=answer.text), said(f"More, {turn}.")]
    return texts


def test_a_template_that_knows_no_parts_gets_sounds_in_the_text(runner: GenerationRunner) -> None:
    template = "{% for message in messages %}{{ message.content }}\n{% endfor %}Answer:"
    one, other = ask(
        runner, *(shown("What is ", part, "?", chat_template=template, logprobs=True) for part in (ONE, OTHER))
    )
    assert one.error is other.error is None
    assert one.logprobs[0].logprob != pytest.approx(other.logprobs[0].logprob, abs=1e-3)


def test_a_broken_sound_ends_its_own_request_with_its_path(runner: GenerationRunner) -> None:
    error = refused(runner, "What is said in ", ONE, " and ", sound_of(b"RIFF"))
    assert (error.code, error.field) == ("invalid_request", "messages[0].content[3].media.data")
    assert error.message.startswith("messages[0].content[3].media.data: ")


def test_an_image_is_no_sound_though_it_was_seen_before(runner: GenerationRunner) -> None:
    assert IMAGE.media.data is not None
    ask(runner, shown(IMAGE, "What is it?"))
    error = refused(runner, "What is said in ", type(ONE)(media=IMAGE.media), "?")
    assert (error.code, error.field) == ("invalid_request", "messages[0].content[1].media.data")
    assert "is not a supported sound" in error.message
    ask(runner, shown(ONE, "What is it?"))
    assert "is not a supported image" in refused(runner, ImagePart(media=ONE.media), "What is it?").message


@pytest.mark.parametrize("seconds", [31.5, 700])
def test_a_sound_that_is_longer_than_the_model_hears_is_refused(runner: GenerationRunner, seconds: float) -> None:
    error = refused(runner, "What is said in ", sound(5, seconds, 8_000), "?")
    assert (error.code, error.field) == ("invalid_request", "messages[0].content[1].media")
    assert f"is {seconds:.1f} s long" in error.message
    assert "send it in parts" in error.message


def test_a_sound_that_is_too_short_to_be_heard_is_refused(runner: GenerationRunner) -> None:
    error = refused(runner, "What is said in ", sound(6, 0.05), "?")
    assert (error.code, error.field) == ("invalid_request", "messages[0].content[1].media")
    assert "is 0.050 s long" in error.message
    (answer,) = ask(runner, shown("What is said in ", sound(6, 0.1), "?"))
    assert answer.error is None


def test_a_sounds_placeholder_token_in_a_text_is_refused_beside_a_sound_only(runner: GenerationRunner) -> None:
    assert runner.media is not None
    placeholder = runner.media.placeholders["sound"]
    error = refused(runner, f"What is {placeholder}?", ONE)
    assert (error.code, error.field) == ("invalid_request", "messages")
    assert "2 places for sounds" in error.message
    assert ask(runner, shown(f"What is {placeholder} on ", IMAGE, "?"))[0].error is None


def test_nothing_is_read_of_a_sound_in_a_prompt_that_is_no_conversation(runner: GenerationRunner) -> None:
    assert gather(runner, Generate(prompt="It was a")).media is None
    assert gather(runner, shown("No sound here.")).media is None


def test_an_image_that_is_broken_beside_a_sound_is_the_one_at_fault(runner: GenerationRunner) -> None:
    error = refused(runner, ONE, image_of(b"no image"), "?")
    assert error.field == "messages[0].content[1].media.data"
    assert refused(runner, ONE, ImagePart(media=Media(path="/none.png")), "?").code == "unsupported"
