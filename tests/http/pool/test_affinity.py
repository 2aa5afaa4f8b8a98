"""The choice of a replica for a prompt."""

import pytest

from lmwire_http.pool.replica import PrefixAffinity, prefix_hashes
from lmwire_protocol import Message

SYSTEM = Message(role="system", content="You are a helpful assistant.")
LONG = "It was a dark and stormy night. " * 1000


def user(text: str) -> Message:
    return Message(role="user", content=text)


@pytest.mark.parametrize(
    "beginning",
    [
        [SYSTEM, user("one")],
        [{"role": "system", "content": "Be brief."}],
        ["a text", b"bytes", [1, 2, 3], None],
        [frozenset({"what no encoder knows"})],
    ],
    ids=["structs", "dicts", "mixed", "odd"],
)
def test_prompts_that_begin_alike_have_the_same_first_links(beginning: list[object]) -> None:
    first, second = list(prefix_hashes([*beginning, "two"])), list(prefix_hashes([*beginning, "three"]))
    shared = list(prefix_hashes(beginning))
    assert first[: len(shared)] == second[: len(shared)] == shared
    assert first[-1] != second[-1]


def test_parts_are_not_confused_with_their_sum() -> None:
    assert list(prefix_hashes(["ab", "c"]))[-1] != list(prefix_hashes(["a", "bc"]))[-1]


def test_long_texts_that_end_differently_share_most_of_their_links_and_have_few() -> None:
    one, two = list(prefix_hashes([LONG + "one"])), list(prefix_hashes([LONG + "two"]))
    assert one[:-1] == two[:-1]
    assert len(one) < 10


def test_a_conversation_stays_where_it_was() -> None:
    affinity = PrefixAffinity()
    turns: list[object] = [SYSTEM]
    assert affinity.choose([SYSTEM, user("another's")], [0, 1, 1], [0, 1, 2]) == 0
    turns.append(user("first"))
    assert affinity.choose(turns, [9, 1, 0], [0, 1, 2]) == 2  # what knows the system prompt is much busier
    for text, busy in (("second", [0, 0, 1]), ("third", [0, 0, 3])):
        turns += [Message(role="assistant", content="yes"), user(text)]
        assert affinity.choose(turns, busy, [0, 1, 2]) == 2


def test_unknown_prompts_go_to_the_least_busy() -> None:
    affinity = PrefixAffinity()
    assert [affinity.choose([user(str(n))], busy, [0, 1]) for n, busy in enumerate([[1, 0], [0, 1]])] == [1, 0]


def test_of_two_that_know_the_beginning_the_less_busy_is_taken() -> None:
    affinity = PrefixAffinity()
    assert affinity.choose([SYSTEM], [0, 9, 9], [0, 1, 2]) == 0
    assert affinity.choose([SYSTEM], [9, 0, 9], [0, 1, 2]) == 1
    assert affinity.choose([SYSTEM], [4, 3, 0], [0, 1, 2]) == 1


def test_load_is_bounded_however_alike_the_prompts_are() -> None:
    affinity, busy = PrefixAffinity(), [0, 0, 0, 0]
    for number in range(400):
        busy[affinity.choose([SYSTEM, user(str(number))], busy, [0, 1, 2, 3])] += 1
    assert max(busy) <= 125 + 1
    assert min(busy) > 0


def test_a_replica_that_is_not_up_is_not_chosen() -> None:
    affinity = PrefixAffinity()
    assert affinity.choose([SYSTEM], [0, 1], [0, 1]) == 0
    assert affinity.choose([SYSTEM], [0, 1], [1]) == 1


def test_what_a_replica_had_cached_is_forgotten_with_its_worker() -> None:
    affinity = PrefixAffinity()
    assert affinity.choose([SYSTEM], [1, 0], [0, 1]) == 1
    affinity.forget(1)
    assert affinity.choose([SYSTEM], [0, 0], [0, 1]) == 0


def test_memory_is_bounded_and_keeps_what_is_shared() -> None:
    affinity = PrefixAffinity()
    assert affinity.choose([SYSTEM, user("mine")], [1, 0], [0, 1]) == 1
    for number in range(20_000):
        affinity.choose([SYSTEM, user(str(number))], [9, 0], [0, 1])
    assert len(affinity.replicas_of) == 16_384
    assert affinity.choose([SYSTEM], [0, 0], [0, 1]) == 1
