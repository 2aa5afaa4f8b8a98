"""DRY: the penalties that its definition gives, for every row of a batch as if it were alone."""

import random
from typing import Any

import mlx.core as mx
import numpy as np
import pytest

from lmwire_protocol import Generate
from lmwire_worker.generation.sampling.dry import MAX_PENALTY, MAX_REPETITION, DryPenalties, Repetitions
from support.runners.generation_runners import FolderOf, RunnerOf, ask, stock

TEXTS = ["a", "b", " c", "\n", "x:", "END", "E", "ND", "é".encode()[:1].decode("latin-1"), ""]
"""The text of each token; one breaker may span two of them."""


def token_bytes(token: int) -> bytes:
    return TEXTS[token].encode("latin-1")


def request(**fields: Any) -> Generate:
    return Generate(prompt="", **fields)


def any_request(chance: random.Random) -> Generate:
    return request(
        dry_multiplier=chance.choice([0.5, 0.8, 100]),
        dry_base=chance.choice([1, 1.75, 10]),
        dry_allowed_length=chance.choice([0, 1, 2, 2, 5, 2**53 - 1]),
        dry_range=chance.choice([0, 0, 1, 7, 40]),
        dry_sequence_breakers=chance.choice([None, [], ["a"], ["END", "\n"], ["bb", "x:a"]]),
    )


def by_definition(fields: Generate, history: list[int]) -> dict[int, float]:
    """The penalty of each token after a history, found by trying each place and each length."""
    given = fields.dry_sequence_breakers
    breakers = [text.encode() for text in (["\n", ":", '"', "*"] if given is None else given)]

    def breaks(place: int) -> bool:
        """Return whether a breaker ends in the token of a place, and not before."""
        if not breakers:
            return False
        text = b"".join(map(token_bytes, history[: place + 1]))
        inside = len(token_bytes(history[place]))
        return any(text[: len(text) - back].endswith(breaker) for breaker in breakers for back in range(inside))

    broken = [breaks(place) for place in range(len(history))]
    kept = history[-fields.dry_range :] if fields.dry_range else history
    broken = broken[len(history) - len(kept) :]
    longest: dict[int, int] = {}
    for place in range(1, len(kept)):  # of the token that came after an earlier occurrence
        length = 0
        while length < min(MAX_REPETITION, place):
            old, new = place - 1 - length, len(kept) - 1 - length
            if kept[old] != kept[new] or broken[new]:
                break
            length += 1
        if length >= max(1, fields.dry_allowed_length) and not broken[place]:
            longest[kept[place]] = max(length, longest.get(kept[place], 0))
    return {
        token: min(fields.dry_multiplier * fields.dry_base ** (length - fields.dry_allowed_length), MAX_PENALTY)
        for token, length in longest.items()
    }


def found(repetitions: Repetitions) -> dict[int, float]:
    tokens, penalties = repetitions.penalties()
    return dict(zip(tokens.tolist(), penalties.tolist(), strict=True))


def assert_same(got: dict[int, float], expected: dict[int, float], told: object) -> None:
    assert got.keys() == expected.keys(), told
    for token, penalty in expected.items():
        assert got[token] == pytest.approx(penalty, rel=1e-9), told


@pytest.mark.parametrize("seed", range(60))
def test_every_penalty_is_the_one_of_the_definition(seed: int) -> None:
    chance = random.Random(seed)
    fields = any_request(chance)
    few = chance.randint(1, len(TEXTS))
    history = [chance.randrange(few) for _ in range(chance.choice([0, 3, 60, 90]))]
    repetitions = Repetitions(fields, token_bytes)
    for _ in range(40):
        more = [chance.randrange(few) for _ in range(chance.choice([1, 1, 1, 3]))]  # several come where they are forced
        history += more
        repetitions.read(history[:-1], history[-1])
        assert_same(found(repetitions), by_definition(fields, history), (fields, history))


@pytest.mark.parametrize("length", [MAX_REPETITION, MAX_REPETITION + 1, 400])
def test_a_repetition_counts_up_to_a_length_and_its_penalty_stays_finite(length: int) -> None:
    fields = request(dry_multiplier=100, dry_base=10, dry_allowed_length=1)
    tokens = [0] * (length + 1)
    at_once, one_by_one = Repetitions(fields, token_bytes), Repetitions(fields, token_bytes)
    at_once.read(tokens[:-1], 0)
    for place in range(len(tokens)):
        one_by_one.read(tokens[:place], 0)
    assert found(at_once) == found(one_by_one) == {0: MAX_PENALTY}


def test_after_it_forgot_a_row_is_read_again() -> None:
    repetitions = Repetitions(request(dry_multiplier=1), token_bytes)
    repetitions.read([0, 1, 2, 0], 1)
    before = found(repetitions)
    repetitions.forget()
    repetitions.read([0, 1, 2, 0], 1)
    assert found(repetitions) == before == {2: 1.0}


def test_each_row_of_a_batch_is_penalized_as_if_it_were_alone() -> None:
    chance = random.Random(7)
    logits = mx.random.normal((6, len(TEXTS)), key=mx.random.key(1)).astype(mx.bfloat16)
    before = np.array(logits.astype(mx.float32))
    asking = {row: any_request(chance) for row in (1, 2, 4)}
    histories = {row: [chance.randrange(3) for _ in range(10 * row)] for row in asking}
    dry = DryPenalties([(row, Repetitions(fields, token_bytes), histories[row]) for row, fields in asking.items()])
    for _ in range(30):
        newest = [chance.randrange(3) for _ in range(6)]
        result = np.array(dry(logits, mx.array(newest)).astype(mx.float32))
        for row in range(6):
            expected = before[row].copy()
            if row in asking:
                histories[row].append(newest[row])
                for token, penalty in by_definition(asking[row], histories[row]).items():
                    expected[token] -= np.float32(penalty)
            assert np.allclose(result[row], expected, rtol=1e-6), row
        assert (np.array(logits.astype(mx.float32)) == before).all(), "log-probabilities are of these"


@pytest.mark.slow
def test_a_model_gives_the_tokens_that_its_penalized_logits_make_most_probable(
    runner_of: RunnerOf, folder_of: FolderOf
) -> None:
    prompt = [5, 6, 7, 8, 5, 6, 7, 9, 5, 6]
    fields = Generate(
        prompt=prompt, max_tokens=40, ignore_eos=True, dry_multiplier=2, dry_allowed_length=1, dry_sequence_breakers=[]
    )
    free = Generate(prompt=prompt, max_tokens=40, ignore_eos=True)
    model, _ = stock(folder_of("qwen3"))
    ends = runner_of("qwen3").preparer.eos_token_ids
    tokens = list(prompt)
    for _ in range(40):
        logits = np.array(model(mx.array([tokens]))[0, -1].astype(mx.float32))
        for token, penalty in by_definition(fields, tokens).items():
            logits[token] -= penalty
        logits[list(ends)] = -np.inf
        tokens.append(int(logits.argmax()))
    answer, without = ask(runner_of("qwen3"), fields, free)
    assert answer.token_ids == tokens[len(prompt) :]
    assert answer.token_ids != without.token_ids
