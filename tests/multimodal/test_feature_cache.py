"""Cached media inputs are part of the worker's memory: counted, bounded, and evicted before a request waits."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, cast

import mlx.core as mx
import numpy as np
import pytest

from lmwire_protocol import Generate, ImagePart, Load, RequestError, Tokenize
from lmwire_protocol.events import CacheStats
from lmwire_worker.engine.interface import InsufficientMemory
from lmwire_worker.generation.admission import MemoryBudget, RowCost
from lmwire_worker.generation.runner import GenerationRunner
from lmwire_worker.loading.model_loader import MlxModelLoader
from lmwire_worker.media import MediaPolicy
from lmwire_worker.models.model_info import describe_model
from lmwire_worker.models.tokenizer_loading import load_tokenizer
from lmwire_worker.models.weights import read_weights
from lmwire_worker.multimodal.loader import MultimodalLoader
from lmwire_worker.multimodal.media_input import DEFAULT_BUDGET_BYTES, FeatureCache, Features, MediaInput
from support.media.shown_images import image, shown
from support.runners.generation_runners import Driver, FolderOf, ask, gather

pytestmark = pytest.mark.slow

MIB: Final = 2**20
ROW_TOKENS: Final = 2048
BIG_BYTES: Final = 64 * 1176 * 4 + 3 * 8
"""Bytes of a big image's patches, in float32, and of their grid."""


# The feature cache.


def media_input(number: int, nbytes: int = 100) -> MediaInput:
    return MediaInput(bytes([number]), "*", [1], {"pixel_values": np.zeros(nbytes, np.uint8)})


def feature_cache(*media_inputs: MediaInput, in_use: tuple[MediaInput, ...] = ()) -> FeatureCache:
    feature_cache = FeatureCache()
    feature_cache.track_use(lambda: in_use)
    for one in media_inputs:
        feature_cache.add(one)
    return feature_cache


def test_the_least_recently_used_features_are_evicted_first() -> None:
    one, two, three = (media_input(number) for number in (1, 2, 3))
    cached = feature_cache(one, two, three)
    assert cached.find(one.digest) is one
    assert cached.stale_since == two.last_used
    assert cached.evict(150) == 200
    assert [cached.find(each.digest) is not None for each in (one, two, three)] == [True, False, False]
    assert (cached.bytes, cached.count(), cached.evictions) == (100, (1, 100), 2)


def test_an_image_in_use_takes_its_memory_once_and_frees_none() -> None:
    used, gone, idle = (media_input(number) for number in (1, 2, 3))
    cached = feature_cache(used, idle, in_use=(used, gone))
    assert cached.bytes == 300
    assert cached.count() == (2, 200)
    assert cached.stale_since == idle.last_used
    assert cached.evict(1000) == 100
    assert cached.find(used.digest) is used
    assert cached.stale_since is None
    assert cached.clear() == 0
    assert cached.bytes == 200


def test_the_memory_of_an_image_is_reserved_before_it_is_encoded() -> None:
    pixels = {"pixel_values": np.zeros(1000, np.uint8)}
    features = Features(mx.zeros((1, 4, 50)), [mx.zeros((4, 50))])
    for token_bytes, before in ((100, 1000), (400, 1600)):
        one = MediaInput(b"1", "*", [1] * 4, pixels, token_bytes)
        assert one.nbytes == before
        one.set_features(features)
        assert one.nbytes == features.nbytes == 1600


# A runner with little memory.


@pytest.fixture(scope="module")
def folder(folder_of: FolderOf) -> Path:
    return folder_of("qwen2_5_vl")


@pytest.fixture
def runner_for(folder: Path) -> Callable[[float], GenerationRunner]:
    """A runner with memory for a row of `ROW_TOKENS`, and for a number of MiB besides."""

    def runner_for(besides: float) -> GenerationRunner:
        loader = MultimodalLoader(Load(path=str(folder)), folder)
        base = loader.open_base(folder, trust_remote_code=False)
        network: Any = base.new_network()
        tokenizer = load_tokenizer(folder, base.config, trust_remote_code=False)
        loader.open_processor(network, tokenizer)
        read_weights(network, folder, lambda *_: None)
        processor = loader.open(network, MediaPolicy(), lambda *_: None)
        cost = RowCost.measure(network)
        budget = MemoryBudget(cost.bytes(ROW_TOKENS) + int(besides * MIB), 0, 0, cost)
        runner = GenerationRunner(
            network, tokenizer, describe_model(folder, base.config, network, tokenizer), budget, None, processor
        )
        processor.feature_cache.budget = budget.total_bytes
        return runner

    return runner_for


def look_at(runner: GenerationRunner, *images: ImagePart) -> list[MediaInput]:
    """Return the media inputs of images, not encoded."""
    request = Tokenize(messages=shown(*images, "?").messages)
    gathered: Any = gather(runner, request)
    runner.tokenize(request, gathered)
    return gathered.media.results()


def cached(runner: GenerationRunner) -> list[bytes]:
    assert runner.media is not None
    return [*cast(Any, runner.media.feature_cache).cached]


def stats(runner: GenerationRunner) -> CacheStats:
    found = runner.cache_stats()
    assert found is not None
    return found


def long_prompt(tokens: int) -> Generate:
    return Generate(prompt=[300, *[301] * (tokens - 1)], max_tokens=1, cache="off")


def big(seed: int) -> ImagePart:
    return image(seed, 112, 112)


def test_unused_images_are_evicted_before_a_request_waits(
    runner_for: Callable[[float], GenerationRunner],
) -> None:
    runner = runner_for(0.5)
    media_inputs = look_at(runner, *(big(seed) for seed in range(5)))
    assert [one.nbytes for one in media_inputs] == [BIG_BYTES] * 5
    runner.add(0, long_prompt(ROW_TOKENS - 1), 0)
    assert cached(runner) == [media_inputs[-1].digest], "no more than needed, the latest last"
    assert (stats(runner).bytes, stats(runner).evictions) == (media_inputs[-1].nbytes, 4)


def test_of_prompts_and_images_the_least_recently_used_is_evicted_first(
    runner_for: Callable[[float], GenerationRunner],
) -> None:
    runner = runner_for(0.5)
    (old,) = look_at(runner, big(1))
    ask(runner, Generate(prompt=[300, *[301] * 299], max_tokens=1))
    prompt_bytes = runner.cache.prefix_cache.bytes
    (new,) = look_at(runner, big(2))
    assert runner.cache.evict(1) == old.nbytes
    assert (runner.cache.prefix_cache.bytes, cached(runner)) == (prompt_bytes, [new.digest])
    assert runner.cache.evict(prompt_bytes) == prompt_bytes
    assert cached(runner) == [new.digest]
    assert runner.cache.evict(1 << 40) == new.nbytes
    assert runner.cache.evict(1) == 0


def test_images_are_evicted_for_running_answers(runner_for: Callable[[float], GenerationRunner]) -> None:
    runner = runner_for(0)
    driver = Driver(runner)
    driver.add(0, Generate(prompt=[300, *[301] * 1199], max_tokens=20, ignore_eos=True, cache="off"))
    media_inputs = look_at(runner, big(1), big(2))
    driver.step()
    assert cached(runner) == [media_inputs[1].digest]
    answer = driver.finish()[0]
    assert (answer.finish_reason, answer.generated) == ("length", 20)


def test_a_requests_media_inputs_need_memory_beside_its_row(
    runner_for: Callable[[float], GenerationRunner],
) -> None:
    runner = runner_for(0.5)
    chat = shown(big(1), big(2), "?", max_tokens=20, cache="off", ignore_eos=True)
    driver = Driver(runner)
    driver.add(0, chat)
    runner.cache.evict(1 << 40)
    assert runner.cache.bytes == 2 * BIG_BYTES, "they are not kept, and take their memory all the same"
    with pytest.raises(InsufficientMemory):
        runner.add(1, long_prompt(ROW_TOKENS - 300), 0)
    driver.finish()
    assert runner.cache.bytes < 2 * BIG_BYTES
    runner.add(1, long_prompt(ROW_TOKENS - 300), 0)
    runner.remove(1)


def test_a_request_whose_images_never_fit_is_refused_with_the_numbers(
    runner_for: Callable[[float], GenerationRunner],
) -> None:
    runner = runner_for(0)
    chat = shown(*(big(seed) for seed in range(4)), "?")
    with pytest.raises(RequestError, match=r"besides 1\.1 MiB for its images and sounds") as refused:
        runner.add(0, chat, 0, prepared=gather(runner, chat))
    assert refused.value.code == "out_of_memory"
    assert ask(runner, shown(big(1), "?"))[0].error is None


def test_the_size_of_the_cache_includes_the_images(runner_for: Callable[[float], GenerationRunner]) -> None:
    runner = runner_for(0.5)
    before = stats(runner)
    assert (before.bytes, before.entries) == (0, 0), "the images of the load's trial are gone"
    (answer,) = ask(runner, shown(big(1), "?"))
    assert answer.error is None
    prompts = runner.cache.prefix_cache.stats()
    (seen,) = look_at(runner, big(1))
    assert seen.features is not None
    assert stats(runner).bytes == prompts.bytes + seen.features.nbytes
    assert stats(runner).entries == prompts.entries + 1
    assert runner.clear_cache() == prompts.bytes + seen.features.nbytes
    assert (stats(runner).bytes, stats(runner).entries) == (0, 0)


def test_a_request_without_cache_neither_caches_images_nor_uses_cached_ones(
    runner_for: Callable[[float], GenerationRunner],
) -> None:
    runner = runner_for(0.5)
    request = shown(big(1), "?", cache="off")
    (answer,) = ask(runner, request)
    assert (stats(runner).bytes, stats(runner).entries) == (0, 0)
    (warm,) = ask(runner, shown(big(1), "?"))
    assert warm.token_ids == answer.token_ids
    (seen,) = look_at(runner, big(1))
    gathered: Any = gather(runner, request)
    (own,) = gathered.media.results()
    assert (own is seen, own.features, seen.features is None) == (False, None, False)


@pytest.mark.parametrize("limit", [MIB, 64 * MIB, 64 * 1024 * MIB])
def test_images_share_the_memory_of_the_cache(folder: Path, limit: int) -> None:
    engine = MlxModelLoader(memory_limit=mx.get_active_memory() + limit)
    engine.prepare()
    runner = engine.open(Load(path=str(folder), force=True), lambda *_: None, lambda: None)
    assert isinstance(runner, GenerationRunner) and runner.media is not None
    budget = runner.admission.budget
    assert stats(runner).budget_bytes == budget.max_cache_bytes
    assert runner.media.feature_cache.budget == min(DEFAULT_BUDGET_BYTES, budget.max_cache_bytes // 4)
    for seed in range(12):
        look_at(runner, big(seed))
        assert stats(runner).bytes <= stats(runner).budget_bytes
    runner.close()


# The models.


def test_the_memory_of_features_is_known_after_the_load(runner: GenerationRunner) -> None:
    assert runner.media is not None
    media_inputs = cast(Any, runner.media).inputs
    chat = shown(big(1), "and", image(2), "?")
    predicted = [len(one.tokens) * media_inputs.token_bytes for one in look_at(runner, big(1), image(2))]
    (answer,) = ask(runner, chat)
    assert answer.error is None
    for one, bytes in zip(look_at(runner, big(1), image(2)), predicted, strict=True):
        assert one.features is not None
        assert 0.9 * bytes <= one.features.nbytes <= bytes
