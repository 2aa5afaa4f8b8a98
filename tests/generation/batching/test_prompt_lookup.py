"""Proposals from the text itself, token by token."""

from lmwire_worker.generation.batching.pace import FIRST_PROPOSALS, MAX_PAUSE, Pace
from lmwire_worker.generation.batching.prompt_lookup import MATCHED_TOKENS, MAX_PROPOSALS, MAX_TOKENS, PromptLookup


def test_what_followed_the_same_tokens_is_proposed() -> None:
    assert PromptLookup().propose([1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3], 9) == [4, 5, 6, 7]


def test_the_last_of_several_places_counts() -> None:
    assert PromptLookup().propose([1, 2, 3, 4, 0, 1, 2, 3, 5, 0, 1, 2, 3], 1) == [5]


def test_the_place_with_the_longest_equal_text_comes_first() -> None:
    first, second = [11, 12, 13, 14, 15, 1, 2, 3], [21, 22, 23, 24, 25, 1, 2, 3]
    text = [*first, 4, *second, 5]
    assert PromptLookup().propose([*text, *first], 1) == [4]
    assert PromptLookup().propose([*text, *second], 1) == [5]
    assert PromptLookup().propose([*text, 31, 1, 2, 3], 1) == [5]


def test_fewer_tokens_than_must_match_propose_nothing() -> None:
    lookup = PromptLookup()
    assert lookup.propose([], 9) == lookup.propose([1, 2], 9) == lookup.propose([1, 2, 9, 9, 1, 2], 9) == []
    assert min(MATCHED_TOKENS) == 3


def test_a_loop_goes_on() -> None:
    assert PromptLookup().propose([7, 8, 7, 8, 7, 8], 9) == [7, 8, 7, 8]


def test_no_more_is_proposed_than_the_answer_may_have() -> None:
    text = [1, 2, 3, 4, 5, 6, 1, 2, 3]
    assert [len(PromptLookup().propose(text, limit)) for limit in (0, 1, 2)] == [0, 1, 2]


def test_bytes_that_lie_across_two_tokens_are_no_match() -> None:
    """0x0101…01 is found between tokens of such bytes, too."""
    ones = 0x01010101
    assert PromptLookup().propose([ones << 8 & 0xFFFFFFFF, ones, ones, ones >> 8, 5, ones, ones, ones], 9) == []


def test_right_proposals_become_longer_and_a_wrong_one_short() -> None:
    lookup = PromptLookup()
    text = [*range(100), 0, 1, 2]
    lengths = []
    for _ in range(5):
        proposed = lookup.propose(text, 99)
        lengths.append(len(proposed))
        lookup.pace.note(len(proposed), len(proposed))
    assert lengths == [FIRST_PROPOSALS, 2 * FIRST_PROPOSALS, 4 * FIRST_PROPOSALS, MAX_PROPOSALS, MAX_PROPOSALS]
    lookup.pace.note(MAX_PROPOSALS, 1)
    assert len(lookup.propose(text, 99)) == FIRST_PROPOSALS


def test_wrong_proposals_are_followed_by_ever_longer_pauses() -> None:
    lookup = PromptLookup()
    text = [*range(10), 0, 1, 2]
    pauses = []
    for _ in range(8):
        pause = 0
        while not lookup.propose(text, 9):
            pause += 1
        pauses.append(pause)
        lookup.pace.note(4, 0)
    assert pauses == [0, 2, 4, 8, 16, 32, MAX_PAUSE, MAX_PAUSE]
    lookup.pace.note(4, 1)
    while not lookup.propose(text, 9):
        pass
    lookup.pace.note(4, 0)
    assert [bool(lookup.propose(text, 9)) for _ in range(3)] == [False, False, True]


def test_only_the_newest_tokens_of_a_long_text_are_searched() -> None:
    lookup = PromptLookup()
    filler = [10 + n for n in range(MAX_TOKENS)]
    assert lookup.propose([1, 2, 3, 4, *filler, 1, 2, 3], 9) == []
    assert lookup.propose([1, 2, 3, 4, *filler, 1, 2, 3, 5, 1, 2, 3], 1) == [5]


def test_a_patient_pace_pauses_after_several_wrong_proposals_only() -> None:
    pace = Pace(4, patience=3)
    spans = []
    for _ in range(6):
        spans.append(pace.next())
        if spans[-1]:
            pace.note(4, 0)
    assert spans == [4, 4, 4, 4, 0, 0]
    pace = Pace(4, patience=3)
    for accepted in (0, 0, 0, 1, 0, 0, 0):
        assert pace.next() == 4
        pace.note(4, accepted)
    assert pace.next() == 4
