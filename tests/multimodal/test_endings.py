"""Ends of answers about images: stop strings, biases, seeds, cancels."""

import pytest
from msgspec.structs import replace

from lmwire_protocol import Chat, Generate
from lmwire_worker.generation.runner import GenerationRunner
from random_model import END_OF_TURN
from support.media.shown_images import image, shown
from support.runners.generation_runners import Driver, ask, ask_alone, chat

pytestmark = pytest.mark.slow

ONE, TALL = image(1), image(3, 64, 128)


def token(runner: GenerationRunner, text: str) -> int:
    (token,) = runner.preparer.tokenizer.encode(text, add_special_tokens=False)
    return token


@pytest.mark.parametrize("include_stop", [False, True])
def test_a_stop_string_over_several_tokens_ends_it_and_is_shown_where_asked_for(
    talker: GenerationRunner, include_stop: bool
) -> None:
    only_b = {"logit_bias": {token(talker, "b"): 100}, "max_tokens": 20}
    request = shown(ONE, "Say.", **only_b, stop=["bbbb", "c"], include_stop=include_stop)
    neighbour = shown(ONE, "Say.", **only_b)
    answer, other = ask(talker, request, neighbour)
    assert (answer.finish_reason, answer.stop, answer.generated) == ("stop", "bbbb", 4)
    assert answer.text == ("bbbb" if include_stop else "")
    assert (other.finish_reason, other.text) == ("length", "b" * 20)


def test_an_answer_about_an_image_has_min_tokens(talker: GenerationRunner) -> None:
    ends = {"logit_bias": {token(talker, END_OF_TURN): 100}, "max_tokens": 20}
    at_once, later = ask(talker, shown(ONE, "Say.", **ends), shown(ONE, "Say.", **ends, min_tokens=7))
    assert (at_once.finish_reason, at_once.generated) == ("stop", 1)
    assert (later.finish_reason, later.generated) == ("stop", 8), "the end itself is counted"


def test_a_frequency_penalty_changes_an_answer_about_an_image(talker: GenerationRunner) -> None:
    letter = token(talker, "b")
    biased = shown(ONE, "Say.", max_tokens=40, logit_bias={letter: 30})
    plain, penalised = ask(talker, biased, replace(biased, frequency_penalty=2.0, presence_penalty=2.0))
    assert plain.token_ids.count(letter) > penalised.token_ids.count(letter) > 0


def test_another_seed_gives_another_answer_and_the_same_seed_the_same(talker: GenerationRunner) -> None:
    request = shown("What is on ", TALL, "?", temperature=1, max_tokens=12)
    one, same, other = ask(talker, request, request, request, seeds=[3, 3, 4])
    assert one.token_ids == same.token_ids
    assert one.token_ids != other.token_ids


@pytest.mark.parametrize("tokens", [1, 5])
def test_a_cancelled_answer_about_an_image_does_not_affect_others(talker: GenerationRunner, tokens: int) -> None:
    neighbours: list[Chat | Generate] = [
        shown("What is on ", ONE, "?", max_tokens=20, cache="off"),
        chat("No image here.", temperature=1, max_tokens=20, cache="off"),
        shown(TALL, "And here?", temperature=1, max_tokens=20, n=2, cache="off"),
    ]
    alone = ask_alone(talker, *neighbours)
    driver = Driver(talker)
    driver.add(9, shown(ONE, TALL, "Never mind.", n=2, ignore_eos=True, max_tokens=50, cache="off"))
    for key, request in enumerate(neighbours):
        driver.add(key, request)
    while driver.answers[9].generated < tokens:
        driver.step()
    assert 0 < driver.remove(9).generated < 50
    driver.finish()
    for key, answer in enumerate(alone):
        assert (driver.answers[key].token_ids, driver.answers[key].text) == (answer.token_ids, answer.text)


def test_a_text_is_cut_to_the_context_and_what_fits_beside_an_image_stays_as_it_is(talker: GenerationRunner) -> None:
    cut = talker.add(0, chat("on and on " * 2000, truncate="middle", max_tokens=3), 0)
    talker.remove(0)
    assert cut.prompt_tokens == talker.model.context_len - 3
    request = shown(ONE, "What is it?", max_tokens=3)
    whole, fits = ask(talker, request, replace(request, truncate="left"))
    assert (fits.error, fits.token_ids) == (None, whole.token_ids)
