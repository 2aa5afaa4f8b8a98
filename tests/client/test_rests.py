"""For how long a connection need not be read: by what came, and by which requests are open."""

from collections.abc import Sequence

import pytest

from lmwire.pieces import CallPiece, Piece
from lmwire.rests import Rests
from lmwire.session import Arrival
from lmwire_protocol import Chat, Command, Embed, Generate, events

FOUR = ["a", "b", "c", "d"]
WHOLE = 0.03


def opened(*ids: str, command: Command | None = None) -> Rests:
    rests = Rests()
    for id in ids:
        rests.open(id, command or Generate(prompt="sing"))
    return rests


def tokens(ids: Sequence[str], count: int = 1) -> list[Arrival]:
    return [Arrival(id, [Piece(id=id, token="la", token_ids=[1]) for _ in range(count)]) for id in ids]


def test_four_answers_in_their_midst_may_wait() -> None:
    assert opened(*FOUR).after(tokens(FOUR), 0.0) == WHOLE
    assert opened(*FOUR).after(tokens(FOUR[:3]), 0.0) == 0


@pytest.mark.parametrize("command", [Generate(prompt="late"), Chat(messages=[]), Embed(input=["late"])])
def test_one_that_has_not_begun_shortens_the_rest_until_it_has_ended(command: Command) -> None:
    rests = opened(*FOUR)
    rests.open("late", command)
    assert rests.after(tokens(FOUR), 0.0) == 0.005
    progress = events.Progress(id="late", stage="prefill", current=1, total=2, unit="tokens")
    assert rests.after([*tokens(FOUR), Arrival("late", [progress])], 0.0) == 0.005
    error = events.Error(id="late", error="no", code="busy", retryable=True)
    assert rests.after([*tokens(FOUR), Arrival("late", [error])], 0.0) == WHOLE


def test_a_call_is_a_beginning() -> None:
    rests = opened(*FOUR, "late")
    call = CallPiece(id="late", index=0, call_id="c", name="look", arguments="{")
    assert rests.after([*tokens(FOUR), Arrival("late", [call])], 0.0) == WHOLE


def test_more_tokens_than_were_asked_for_are_no_end_of_the_world() -> None:
    rests = opened(*FOUR, command=Generate(prompt="sing", max_tokens=1))
    assert rests.after(tokens(FOUR, 2), 0.0) == 0
    assert rests.after(tokens(FOUR), 1.0) == 0


def test_the_last_token_of_the_next_answer_to_end_is_read_as_it_comes() -> None:
    rests = opened(*FOUR[1:])
    rests.open("a", Generate(prompt="sing", max_tokens=12))
    assert rests.after(tokens(FOUR), 1.0) == 0  # how fast they come is not known yet
    assert rests.after(tokens(FOUR, 2), 1.01) == WHOLE  # one each 5 ms, and the last but one of 9 in 40
    assert rests.after(tokens(FOUR, 6), 1.04) == pytest.approx(0.01)
    assert rests.after(tokens(FOUR, 2), 1.05) == 0


def test_a_shortened_rest_makes_tokens_seem_no_slower() -> None:
    rests = opened(*FOUR, command=Generate(prompt="sing", max_tokens=100))
    rests.after(tokens(FOUR), 1.0)
    rests.after(tokens(FOUR, 94), 1.094)
    assert rests.after(tokens(FOUR), 1.095) == pytest.approx(0.003)


@pytest.mark.parametrize("step_s", [0.001, 0.002, 0.007, 0.0092, 0.02, 0.05])
def test_ends_are_read_within_a_step(step_s: float) -> None:
    for count in range(1, 130):
        assert late(count, step_s) < step_s


def late(count: int, step_s: float) -> float:
    """How long the last of so many tokens of four answers waits to be read, if one comes each step."""
    rests = opened(*FOUR, command=Generate(prompt="sing", max_tokens=count))
    now = read = 0
    rest_s = 0.0
    while read < count:
        now = max(now + rest_s, read * step_s)
        come = min(count, int(now / step_s + 1e-6) + 1)
        rest_s = rests.after(tokens(FOUR, come - read), now)
        read = come
    return now - (count - 1) * step_s


def test_all_answers_of_a_request_count() -> None:
    rests = opened(*FOUR, command=Generate(prompt="sing", max_tokens=3, n=4, temperature=1.0))
    rests.after(tokens(FOUR, 4), 1.0)
    assert rests.after(tokens(FOUR, 4), 1.02) == pytest.approx(0.015)
    assert rests.after(tokens(FOUR, 3), 1.035) == 0


def test_tokens_count_and_not_their_pieces() -> None:
    rests = opened(*FOUR, command=Generate(prompt="sing", max_tokens=6))
    pieces = [Arrival(id, [Piece(id=id, token="é", token_ids=[1, 2])]) for id in FOUR]
    rests.after(pieces, 1.0)
    assert rests.after(pieces, 1.01) == pytest.approx(0.005)
