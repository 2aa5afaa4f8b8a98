"""The tree of what was computed: what is found in it, what is dropped from it, and that its bytes are counted."""

import gc
import random
from typing import Any

import mlx.core as mx
import pytest
from mlx_lm.models.cache import ArraysCache, CacheList, KVCache, QuantizedKVCache, RotatingKVCache

from lmwire_worker.generation.caches import CacheSchema, Slices
from lmwire_worker.generation.prefix_cache import CacheHit, PrefixCache
from lmwire_worker.generation.prefix_cache.store import MIN_HIT_TOKENS

TOKEN_BYTES = 2 * 2 * 4
"""Keys and values of two numbers."""
STATE_BYTES = 16


class Computed:
    """The caches of a simulated model: each token's keys and values are the token, a state is their sum."""

    def __init__(self, tokens: list[int], *, cut: bool = True, states: bool = False) -> None:
        self._tokens = tokens
        self._cut = cut
        self._states = states

    def slices(self, start: int, stop: int) -> Slices:
        keys = mx.array(self._tokens[start:stop], dtype=mx.float32)[None, None, :, None] * mx.ones((1, 1, 1, 2))
        return [[keys, -keys]] if self._cut else []

    def snapshot(self) -> list[Any]:
        if not self._states:
            return []
        state = ArraysCache(1)
        state[0] = mx.full((1, STATE_BYTES // 4), sum(self._tokens), dtype=mx.float32)
        return [state]


class Plain:
    """A cache of a model with one plain layer."""

    def __init__(self, budget: int = 1 << 20, **options: Any) -> None:
        self.cache = PrefixCache(CacheSchema([KVCache()]), budget, **options)

    def store(self, *tokens: int, pin: bool = False) -> None:
        self.cache.store(list(tokens), Computed(list(tokens)), pin=pin)

    def known(self, *tokens: int) -> int:
        """Return the number of cached tokens of a prompt, and check their content."""
        start = self.cache.fetch([*tokens, 0])
        return self.checked(start, tokens) if start else 0

    def checked(self, start: CacheHit, tokens: tuple[int, ...]) -> int:
        (layer,) = start.cache
        assert layer.offset == start.length
        assert layer.keys[0, 0, : start.length, 0].tolist() == list(tokens[: start.length])
        assert layer.values[0, 0, : start.length, 1].tolist() == [-token for token in tokens[: start.length]]
        return start.length


class Recurrent(Plain):
    """A cache of a model with a plain layer and a recurrent one."""

    def __init__(self, budget: int = 1 << 20, *, cut: bool = True) -> None:
        self._cut = cut
        self.cache = PrefixCache(CacheSchema([KVCache(), ArraysCache(1)] if cut else [ArraysCache(1)]), budget)

    def store(self, *tokens: int, pin: bool = False) -> None:
        self.cache.store(list(tokens), Computed(list(tokens), cut=self._cut, states=True), pin=pin)

    def checked(self, start: CacheHit, tokens: tuple[int, ...]) -> int:
        *layers, state = start.cache
        assert state[0][0, 0].item() == sum(tokens[: start.length])
        for layer in layers:
            assert layer.keys[0, 0, : start.length, 0].tolist() == list(tokens[: start.length])
        return start.length


def check_bytes(cache: PrefixCache) -> None:
    nodes = [node for node in cache.root.subtree() if node is not cache.root]
    assert cache.bytes == sum(node.bytes for node in nodes)
    stats = cache.stats()
    assert (stats.bytes, stats.entries) == (cache.bytes, len(nodes))
    assert cache.bytes <= stats.budget_bytes


# What is found.


def test_it_tells_where_a_prompt_ceases_to_be_known_and_whether_it_differs_there() -> None:
    plain = Plain()
    assert plain.cache.common_tokens([1, 2, 3]) == (0, False), "nothing is cached"
    plain.store(1, 2, 3, 4)
    plain.store(1, 2, 9)
    assert plain.cache.common_tokens([1, 2, 3, 7, 0]) == (3, True)
    assert plain.cache.common_tokens([1, 2, 8, 0]) == (2, True), "between two that are cached"
    assert plain.cache.common_tokens([5, 0]) == (0, True)
    assert plain.cache.common_tokens([1, 2, 3, 4, 5, 0]) == (4, False), "what is cached ends there"
    assert plain.cache.common_tokens([1, 2, 3]) == (2, True), "the last token is always computed"


def test_nothing_is_known_at_first() -> None:
    assert Plain().known(1, 2, 3) == 0


def test_the_longest_known_beginning_is_found() -> None:
    plain = Plain()
    plain.store(1, 2, 3, 4)
    plain.store(1, 2, 5)
    assert plain.known(1, 2, 3, 4, 9) == 4
    assert plain.known(1, 2, 3, 9) == 3
    assert plain.known(1, 2, 5, 6, 7) == 3
    assert plain.known(1, 9) == 1
    assert plain.known(2, 1) == 0


def test_the_last_token_of_a_prompt_is_always_processed() -> None:
    plain = Plain()
    plain.store(1, 2, 3)
    start = plain.cache.fetch([1, 2, 3])
    assert start is not None
    assert start.length == 2


def test_a_short_hit_in_a_long_prompt_is_ignored() -> None:
    plain = Plain()
    plain.store(*range(1, MIN_HIT_TOKENS))
    assert plain.known(*range(1, MIN_HIT_TOKENS), *range(100, 100 + 8 * MIN_HIT_TOKENS)) == 0
    assert plain.cache.stats().misses == 1


def test_a_short_hit_that_covers_much_of_a_prompt_is_used() -> None:
    plain = Plain()
    plain.store(*range(1, MIN_HIT_TOKENS))
    assert plain.known(*range(1, MIN_HIT_TOKENS), *range(100, 100 + 6 * MIN_HIT_TOKENS)) == MIN_HIT_TOKENS - 1


def test_a_hit_of_the_minimum_length_is_used_for_a_prompt_of_any_length() -> None:
    plain = Plain()
    plain.store(*range(1, MIN_HIT_TOKENS + 1))
    assert plain.known(*range(1, MIN_HIT_TOKENS + 1), *range(100, 100 + 100 * MIN_HIT_TOKENS)) == MIN_HIT_TOKENS


def test_a_common_prefix_is_cached_once() -> None:
    plain = Plain()
    prefix = range(1, 101)
    plain.store(*prefix, 200)
    plain.store(*prefix, 201)
    plain.store(*prefix)
    assert plain.cache.bytes == 102 * TOKEN_BYTES
    check_bytes(plain.cache)


def test_a_sequence_that_goes_on_adds_its_new_tokens_only() -> None:
    plain = Plain()
    plain.store(1, 2, 3)
    before = plain.cache.bytes
    plain.store(1, 2, 3, 4, 5)
    assert plain.cache.bytes - before == 2 * TOKEN_BYTES
    assert plain.known(1, 2, 3, 4, 5) == 5


@pytest.mark.parametrize("cut", [True, False])
def test_a_state_is_found_where_it_was_taken_and_nowhere_else(cut: bool) -> None:
    recurrent = Recurrent(cut=cut)
    recurrent.store(1, 2)
    recurrent.store(1, 2, 3, 4)
    assert recurrent.known(1, 2, 3, 4, 5) == 4
    assert recurrent.known(1, 2, 3, 5) == 2
    assert recurrent.known(1, 5) == 0
    recurrent.store(1)
    assert recurrent.known(1, 5) == 1
    check_bytes(recurrent.cache)


def test_a_fetched_cache_stays_intact_after_evictions() -> None:
    plain = Plain()
    plain.store(1, 2, 3)
    start = plain.cache.fetch([1, 2, 3, 4])
    plain.cache.clear()
    assert start is not None
    assert plain.checked(start, (1, 2, 3)) == 3


def test_writes_into_a_fetched_cache_do_not_change_the_entry() -> None:
    plain = Plain()
    plain.store(1, 2, 3)
    for _ in range(2):
        start = plain.cache.fetch([1, 2, 9])
        assert start is not None
        start.cache[0].update_and_fetch(mx.ones((1, 1, 4, 2)), mx.ones((1, 1, 4, 2)))
        assert start.cache[0].keys[0, 0, :2, 0].tolist() == [1, 2]
    assert plain.known(1, 2, 3) == 3


def test_a_quantised_cache_is_cut_as_a_plain_one_is() -> None:
    layer: Any = QuantizedKVCache(group_size=32, bits=8)
    keys = mx.random.normal((1, 2, 10, 32), key=mx.random.key(0))
    layer.update_and_fetch(keys, keys)
    cache = PrefixCache(CacheSchema([QuantizedKVCache(group_size=32, bits=8)]), 1 << 20)

    class Quantized:
        def slices(self, start: int, stop: int) -> Slices:
            return [[mx.contiguous(array[..., start:stop, :]) for array in (*layer.keys, *layer.values)]]

        def snapshot(self) -> list[Any]:
            return []

    cache.store([*range(10)], Quantized())
    start = cache.fetch([0, 1, 2, 3, 4, 5, 99])
    assert start is not None
    again: Any = start.cache[0]
    assert again.offset == 6
    for array, whole in zip((*again.keys, *again.values), (*layer.keys, *layer.values), strict=True):
        assert mx.array_equal(array[..., :6, :], whole[..., :6, :])


def test_layers_of_several_caches_are_put_together_again() -> None:
    cache = PrefixCache(CacheSchema([CacheList(ArraysCache(1), KVCache()), KVCache()]), 1 << 20)

    class Hybrid(Computed):
        def slices(self, start: int, stop: int) -> Slices:
            return super().slices(start, stop) * 2

    cache.store([1, 2, 3], Hybrid([1, 2, 3], states=True))
    start = cache.fetch([1, 2, 3, 4])
    assert start is not None
    first, second = start.cache
    assert isinstance(first, CacheList)
    state, layer = first.caches
    assert state[0][0, 0].item() == 6
    assert [layer.offset, second.offset] == [3, 3]
    assert layer.keys[0, 0, :, 0].tolist() == second.keys[0, 0, :, 0].tolist() == [1, 2, 3]


def test_kv_caches_of_an_unknown_kind_are_not_cached() -> None:
    class Own:
        pass

    assert CacheSchema([KVCache(), RotatingKVCache(8), ArraysCache(2)]).is_supported
    assert not CacheSchema([KVCache(), Own()]).is_supported


# What is dropped.


@pytest.mark.parametrize(
    ("kind", "budget", "words", "longest"),
    [(Plain, 100 * TOKEN_BYTES, 3, 60), (Recurrent, 30 * TOKEN_BYTES + 5 * STATE_BYTES, 2, 20)],
    ids=["plain", "with snapshots"],
)
def test_the_cache_never_exceeds_its_budget(kind: type[Plain], budget: int, words: int, longest: int) -> None:
    cached = kind(budget=budget)
    chance = random.Random(0)
    for _ in range(200):
        tokens = [chance.randrange(words) for _ in range(chance.randrange(1, longest))]
        cached.store(*tokens)
        check_bytes(cached.cache)
        cached.known(*tokens)
    assert cached.cache.stats().evictions > 0


def test_an_entry_above_the_budget_evicts_nothing() -> None:
    plain = Plain(budget=5 * TOKEN_BYTES)
    plain.store(9, 9)
    plain.store(*range(1, 8))
    assert plain.cache.bytes == 2 * TOKEN_BYTES


def test_the_least_recently_used_goes_first_and_reading_is_use() -> None:
    plain = Plain(budget=6 * TOKEN_BYTES)
    plain.store(1, 1)
    plain.store(2, 2)
    plain.store(3, 3)
    assert plain.known(1, 1) == 2
    plain.store(4, 4)
    assert [plain.known(n, n) for n in (1, 2, 3, 4)] == [2, 0, 2, 2]


def test_an_ending_goes_before_the_beginning_that_others_share() -> None:
    plain = Plain(budget=6 * TOKEN_BYTES)
    plain.store(1, 2, 3, 4)
    plain.store(1, 2, 5, 6)
    plain.store(7)
    assert plain.known(1, 2, 5, 6) == 4
    assert plain.known(1, 2, 3, 4) == 2


def test_the_oldest_snapshot_of_a_conversation_is_evicted_first() -> None:
    recurrent = Recurrent(budget=3 * STATE_BYTES, cut=False)
    for turn in range(1, 6):
        recurrent.store(*range(1, 10 * turn))
    assert recurrent.known(*range(1, 100)) == 49
    assert recurrent.known(*range(1, 15)) == 0


def test_eviction_frees_the_requested_bytes() -> None:
    plain = Plain()
    plain.store(1, 1, 1)
    plain.store(2, 2)
    assert plain.cache.evict(1) == 3 * TOKEN_BYTES
    assert [plain.known(1, 1, 1), plain.known(2, 2)] == [0, 2]
    assert plain.cache.evict(1 << 30) == 2 * TOKEN_BYTES
    assert plain.cache.evict(1) == 0


@pytest.mark.parametrize("kind", [Plain, Recurrent])
def test_pinned_entries_stay_until_the_cache_is_cleared(kind: type[Plain]) -> None:
    cache = kind()
    cache.store(1, 2, 3, 4, pin=True)
    cache.store(1, 2, 3, 4, 5, 6)
    cache.store(1, 2, 9)
    cache.cache.evict(1 << 30)
    assert cache.known(1, 2, 3, 4, 5, 6) == 4
    check_bytes(cache.cache)
    assert cache.cache.clear() > 0
    assert cache.known(1, 2, 3, 4) == 0
    assert cache.cache.bytes == 0


@pytest.mark.parametrize("kind", [Plain, Recurrent])
def test_memory_is_given_back_without_waiting_for_python_to_look_for_circles(kind: type[Plain]) -> None:
    cache = kind()
    gc.collect()
    gc.disable()
    try:
        cache.store(1, 2, 3, 4)
        cache.store(1, 2, 3, 9)
        assert cache.known(1, 2, 3, 4) == 4
        cache.cache.clear()
        assert gc.collect() == 0
    finally:
        gc.enable()


def test_a_cached_prompt_can_be_pinned() -> None:
    plain = Plain()
    plain.store(1, 2, 3, 4)
    plain.cache.pin([1, 2])
    plain.cache.evict(1 << 30)
    assert plain.known(1, 2, 3, 4) == 2


def test_pins_do_not_exceed_the_budget() -> None:
    plain = Plain(budget=4 * TOKEN_BYTES)
    plain.store(1, 1, 1, pin=True)
    plain.store(2, 2, pin=True)
    assert [plain.known(1, 1, 1), plain.known(2, 2)] == [3, 0]
    check_bytes(plain.cache)


def test_a_wrong_entry_is_dropped_with_its_continuations() -> None:
    plain = Plain()
    plain.store(1, 2, 3)
    plain.store(1, 2, 4, 5)
    plain.store(6, 7)
    plain.cache.quarantine([1, 2, 3])
    assert [plain.known(1, 2, 4), plain.known(6, 7)] == [0, 2]
    assert plain.cache.stats().mismatches == 1
    check_bytes(plain.cache)


# What is counted.


def test_hits_misses_and_saved_tokens_are_counted() -> None:
    plain = Plain()
    plain.store(1, 2, 3)
    plain.known(1, 2, 3)
    plain.known(1, 2, 9)
    plain.known(9)
    stats = plain.cache.stats()
    assert (stats.hits, stats.misses, stats.saved_tokens) == (2, 1, 5)


def test_every_nth_hit_is_verified_and_counts_as_a_miss() -> None:
    plain = Plain(verify_interval=3)
    plain.store(1, 2, 3)
    starts = [plain.cache.fetch([1, 2, 3, 4]) for _ in range(6)]
    assert [start and start.needs_verification for start in starts] == [False, False, True, False, False, True]
    assert plain.cache.stats().misses == 2
