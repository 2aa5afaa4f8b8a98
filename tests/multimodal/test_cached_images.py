"""Caching of images: the prompt's beginning with an image, and the encoder's output."""

from pathlib import Path
from typing import Any, cast

import pytest
from msgspec.structs import replace

from lmwire_protocol import Chat, ImagePart, Load, Message, Tokenize
from lmwire_worker.engine.load_context import DiskCacheOptions
from lmwire_worker.generation.runner import GenerationRunner
from lmwire_worker.loading.model_loader import MlxModelLoader
from support.media.shown_images import answered, image, said, shown
from support.nightly import nightly_but
from support.runners.generation_runners import Answer, Driver, FolderOf, ask, gather

pytestmark = pytest.mark.slow

ONE, OTHER, TALL = image(1), image(2), image(3, 64, 128)


def same(one: Answer, other: Answer) -> None:
    assert (one.error, other.error) == (None, None)
    assert (one.token_ids, one.finish_reason) == (other.token_ids, other.finish_reason)


def known(runner: GenerationRunner, request: Chat) -> tuple[int, int]:
    """Tokens of a request's prompt that are cached, and all of them."""
    admitted = runner.add(99, request, 0, prepared=gather(runner, request))
    runner.start_waiting()
    runner.remove(99)
    return admitted.cached_tokens, admitted.prompt_tokens


def cold(request: Chat) -> Chat:
    return replace(request, cache="off")


def test_a_conversation_goes_on_as_if_nothing_were_cached(runner: GenerationRunner, encoded: list[bytes]) -> None:
    messages = shown("What is on ", ONE, "?").messages
    for turn in range(4):
        request = Chat(messages=messages, max_tokens=10)
        (answer,) = ask(runner, request)
        if turn:
            assert len(encoded) == 1, "the image was not encoded again"
        messages = answered(request, answer, f"And then, {turn}?")
    encoded.clear()
    runner.clear_cache()
    messages = shown("What is on ", ONE, "?").messages
    for turn in range(4):
        request = Chat(messages=messages, max_tokens=10)
        (warm,) = ask(runner, request)
        (computed,) = ask(runner, cold(request))
        same(warm, computed)
        messages = answered(request, warm, f"And then, {turn}?")


def test_a_second_image_may_come_in_a_later_turn(runner: GenerationRunner, encoded: list[bytes]) -> None:
    first = shown("What is on ", ONE, "?")
    (answer,) = ask(runner, first)
    later = Chat(messages=answered(first, answer, "And on ", TALL, " here?"), max_tokens=10)
    cached, _ = known(runner, later)
    assert cached > 0
    (warm,) = ask(runner, later)
    assert len(encoded) == 2
    same(warm, *ask(runner, cold(later)))


def test_another_question_about_an_image_needs_neither_encoder_nor_prefill_of_it(
    runner: GenerationRunner, encoded: list[bytes]
) -> None:
    ask(runner, shown(ONE, "What is it?"))
    question = shown(ONE, "How old is it?")
    cached, total = known(runner, question)
    assert runner.media is not None
    tokens, _ = runner.tokenize(request := _tokenize(question), gather(runner, request))
    last = len(tokens) - 1 - tokens[::-1].index(cast(Any, runner.media).inputs.modalities["image"].placeholder_token)
    assert last < cached < total
    (warm,) = ask(runner, question)
    assert len(encoded) == 1
    same(warm, *ask(runner, cold(question)))


def test_an_image_after_another_text_is_not_encoded_again(runner: GenerationRunner, encoded: list[bytes]) -> None:
    ask(runner, shown("What is on ", ONE, "?"))
    ask(runner, shown("Before it there is ", OTHER, " and then ", ONE, "!"))
    assert len(encoded) == 2
    assert len(set(encoded)) == 2


def test_the_same_text_about_another_image_shares_nothing_of_the_image(runner: GenerationRunner) -> None:
    ask(runner, shown("What is on ", ONE, "?"))
    other = shown("What is on ", OTHER, "?")
    tokens, _ = runner.tokenize(request := _tokenize(other), gather(runner, request))
    assert runner.media is not None
    cached, _ = known(runner, other)
    assert cached <= tokens.index(cast(Any, runner.media).inputs.modalities["image"].placeholder_token)
    (warm,) = ask(runner, other)
    same(warm, *ask(runner, cold(other)))


def test_conversations_on_different_images_take_turns_and_do_not_mix(runner: GenerationRunner) -> None:
    images = {0: ONE, 1: OTHER, 2: TALL}
    talks = {key: [said("What is on ", part, "?")] for key, part in images.items()}
    alone = {key: _talk(runner, part) for key, part in images.items()}
    runner.clear_cache()
    for turn in range(3):
        driver = Driver(runner)
        for key, messages in talks.items():
            driver.add(key, Chat(messages=messages, max_tokens=8))
            driver.step()
        for key, answer in driver.finish().items():
            assert answer.text == alone[key][turn]
            talks[key] += [Message(role="assistant", content=answer.text), said(f"More, {turn}.")]


def test_a_pinned_image_stays(runner: GenerationRunner) -> None:
    ask(runner, shown(ONE, "What is it?", cache="pin", max_tokens=0))
    runner.cache.evict(1 << 40)
    question = shown(ONE, "What is it?")
    cached, total = known(runner, question)
    assert cached == total - 1
    (warm,) = ask(runner, question)
    same(warm, *ask(runner, cold(question)))


def test_a_check_of_what_is_cached_of_an_image_finds_it_right(runner: GenerationRunner) -> None:
    question = shown(ONE, "What is it?")
    ask(runner, question)
    cache = runner.cache.prefix_cache
    cache.verify_interval = 1
    (checked,) = ask(runner, question)
    same(checked, *ask(runner, cold(question)))
    stats = runner.cache_stats()
    assert stats is not None
    assert stats.mismatches == 0


@pytest.mark.parametrize("family", nightly_but({"gemma3"}, ["qwen2_5_vl", "gemma3"]))
def test_the_next_worker_finds_images_on_disk(folder_of: FolderOf, tmp_path: Path, family: str) -> None:
    settings = DiskCacheOptions(tmp_path / "cache", 1 << 30, print)
    question = shown("It is of a size that is worth a file. " * 4, image(5, 160, 160), "What is it?")
    answers, cached = [], []
    for _ in range(2):
        engine = MlxModelLoader(disk=settings)
        engine.prepare()
        runner = engine.open(Load(path=str(folder_of(family))), lambda *_: None, lambda: None)
        assert isinstance(runner, GenerationRunner)
        answers += ask(runner, question)
        stats = runner.cache_stats()
        assert stats is not None
        cached.append(stats.saved_tokens)
        runner.close()
    assert cached[0] == 0
    assert cached[1] > 64
    same(answers[0], answers[1])


def _talk(runner: GenerationRunner, part: ImagePart) -> list[str]:
    """A conversation's answers, computed from nothing."""
    messages = [said("What is on ", part, "?")]
    texts: list[str] = []
    for turn in range(3):
        (answer,) = ask(runner, Chat(messages=messages, max_tokens=8, cache="off"))
        texts.append(answer.text)
        messages += [Message(role="assistant", content=answer.text), said(f"More, {turn}.")]
    return texts


def _tokenize(request: Chat) -> Tokenize:
    return Tokenize(messages=request.messages)
