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
    assert opened(*FOUR).after(tokens(FOUR)) == WHOLE
    assert opened(*FOUR).after(tokens(FOUR[:3])) == 0


@pytest.mark.parametrize("command", [Generate(prompt="late"), Chat(messages=[]), Embed(input=["late"])])
def test_one_that_has_not_begun_shortens_the_rest_until_it_has_ended(command: Command) -> None:
    rests = opened(*FOUR)
    rests.open("late", command)
    assert rests.after(tokens(FOUR)) == 0.005
    progress = events.Progress(id="late", stage="prefill", current=1, total=2, unit="tokens")
    assert rests.after([*tokens(FOUR), Arrival("late", [progress])]) == 0.005
    error = events.Error(id="late", error="no", code="busy", retryable=True)
    assert rests.after([*tokens(FOUR), Arrival("late", [error])]) == WHOLE


def test_a_call_is_a_beginning() -> None:
    rests = opened(*FOUR, "late")
    call = CallPiece(id="late", index=0, call_id="c", name="look", arguments="{")
    assert rests.after([*tokens(FOUR), Arrival("late", [call])]) == WHOLE


def test_more_tokens_than_were_asked_for_are_no_end_of_the_world() -> None:
    rests = opened(*FOUR, command=Generate(prompt="sing", max_tokens=1))
    assert rests.after(tokens(FOUR, 2)) == 0


def test_a_rest_ends_when_the_next_answer_is_due_to() -> None:
    rests = opened(*FOUR[1:])
    rests.open("a", Generate(prompt="sing", max_tokens=13))
    assert rests.after(tokens(FOUR, 4)) == WHOLE  # 9 more, in more than two such rests
    assert rests.after(tokens(FOUR, 6)) == pytest.approx(WHOLE / 2)
    assert rests.after(tokens(FOUR, 3)) == 0


def test_all_answers_of_a_request_count() -> None:
    rests = opened(*FOUR, command=Generate(prompt="sing", max_tokens=2, n=4, temperature=1.0))
    assert rests.after(tokens(FOUR, 4)) == WHOLE
    assert rests.after(tokens(FOUR, 4)) == 0


def test_tokens_count_and_not_their_pieces() -> None:
    rests = opened(*FOUR, command=Generate(prompt="sing", max_tokens=3))
    assert rests.after([Arrival(id, [Piece(id=id, token="é", token_ids=[1, 2])]) for id in FOUR]) == WHOLE / 2
