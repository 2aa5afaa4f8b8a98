"""Prompts that the context does not hold: refused, or cut to the token."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmwire_protocol import Generate, RequestError
from lmwire_worker.prompts.truncation import fit
from text_lanes import FolderOf, ask_alone, open_lane

BOS = 1
LONG = [BOS, *range(100, 120)]


def cut(tokens: list[int], context_len: int, **fields: Any) -> list[int]:
    return fit(Generate(prompt=tokens, **fields), tokens, context_len, BOS)


def refusal(tokens: list[int], context_len: int, **fields: Any) -> RequestError:
    with pytest.raises(RequestError) as caught:
        cut(tokens, context_len, **fields)
    return caught.value


def test_a_prompt_that_is_too_long_is_refused_with_the_numbers() -> None:
    error = refusal(LONG, 20)
    assert error.code == "context_overflow"
    assert "21 tokens" in error.message and "holds 20" in error.message


@pytest.mark.parametrize("truncate", ["none", "left", "middle"])
def test_a_prompt_that_fits_stays_as_it_is(truncate: Any) -> None:
    assert cut(LONG, 25, truncate=truncate, max_tokens=4) == LONG


def test_a_prompt_of_the_contexts_length_is_no_overflow_without_truncate() -> None:
    assert cut(LONG, 21) == LONG


def test_left_keeps_the_end_and_the_beginning_of_text_token() -> None:
    assert cut(LONG, 10, truncate="left", max_tokens=4) == [BOS, *LONG[-5:]]


def test_left_keeps_nothing_else_of_the_beginning() -> None:
    assert cut(LONG[1:], 10, truncate="left", max_tokens=4) == LONG[-6:]


def test_middle_keeps_the_first_and_the_last_half() -> None:
    assert cut(LONG, 10, truncate="middle", max_tokens=3) == [*LONG[:3], *LONG[-4:]]


def test_without_max_tokens_there_is_room_for_one_token() -> None:
    assert cut(LONG, 10, truncate="left") == [BOS, *LONG[-8:]]


def test_without_an_answer_the_prompt_fills_the_context() -> None:
    assert len(cut(LONG, 10, truncate="middle", max_tokens=0)) == 10


@pytest.mark.parametrize("truncate", ["left", "middle"])
@pytest.mark.parametrize("max_tokens", [9, 10, 11, 2**53 - 1])
def test_max_tokens_that_leave_no_room_for_a_prompt_are_refused(truncate: Any, max_tokens: int) -> None:
    error = refusal(LONG, 10, truncate=truncate, max_tokens=max_tokens)
    assert error.code == "context_overflow"
    assert f"{max_tokens}" in error.message


@pytest.mark.parametrize("truncate", ["left", "middle"])
def test_the_smallest_room_holds_the_first_and_the_last_token(truncate: Any) -> None:
    assert cut(LONG, 3, truncate=truncate, max_tokens=1) == [BOS, LONG[-1]]


@given(
    tokens=st.lists(st.integers(0, 9), min_size=1, max_size=40),
    context_len=st.integers(4, 40),
    truncate=st.sampled_from(["left", "middle"]),
    max_tokens=st.none() | st.integers(0, 2),
)
def test_a_cut_is_exact_and_what_is_kept_is_a_beginning_and_an_end(
    tokens: list[int], context_len: int, truncate: Any, max_tokens: int | None
) -> None:
    kept = cut(tokens, context_len, truncate=truncate, max_tokens=max_tokens)
    room = context_len - (1 if max_tokens is None else max_tokens)
    assert len(kept) == min(len(tokens), room)
    assert any(kept == tokens[:head] + tokens[len(tokens) - len(kept) + head :] for head in range(len(kept) + 1))


@pytest.mark.parametrize("truncate", ["left", "middle"])
def test_an_answer_is_the_one_to_the_prompt_that_is_left(folder_of: FolderOf, truncate: Any) -> None:
    context = 400
    lane = open_lane(folder_of("llama"), context_len=context)
    long = [7 + place % 90 for place in range(context + 50)]
    left = Generate(prompt=fit(Generate(prompt=long, truncate=truncate, max_tokens=6), long, context), max_tokens=6)
    cut, alone = ask_alone(lane, Generate(prompt=long, truncate=truncate, max_tokens=6), left)
    assert cut.prefilled[-1][1] == context - 6
    assert (cut.token_ids, cut.finish_reason) == (alone.token_ids, alone.finish_reason)
