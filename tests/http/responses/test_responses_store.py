"""The store of responses is limited in number and in bytes."""

from lmwire_http.http.response_store import ResponseStore


def test_the_oldest_is_dropped_for_one_too_many() -> None:
    stored = ResponseStore(2)
    for id in "abc":
        stored.put(id, id.upper(), 1)
    assert [stored.get(id) for id in "abc"] == [None, "B", "C"]
    assert [*stored.newest_first()] == ["C", "B"]


def test_the_oldest_are_dropped_for_one_that_needs_their_memory() -> None:
    stored = ResponseStore(100, max_bytes=10)
    for id, size in (("a", 4), ("b", 4), ("c", 9)):
        stored.put(id, id, size)
    assert [stored.get(id) for id in "abc"] == [None, None, "c"]


def test_a_response_over_the_limit_is_not_stored_and_drops_nothing() -> None:
    stored = ResponseStore(100, max_bytes=10)
    stored.put("a", "a", 4)
    stored.put("b", "b", 11)
    assert (stored.get("a"), stored.get("b")) == ("a", None)


def test_a_dropped_response_frees_its_memory() -> None:
    stored = ResponseStore(100, max_bytes=10)
    stored.put("a", "a", 6)
    assert stored.delete("a")
    assert not stored.delete("a")
    stored.put("b", "b", 6)
    stored.put("c", "c", 4)
    assert (stored.get("b"), stored.get("c")) == ("b", "c")


def test_a_response_stored_again_counts_once() -> None:
    stored = ResponseStore(100, max_bytes=10)
    for _ in range(3):
        stored.put("a", "a", 6)
    stored.put("b", "b", 4)
    assert (stored.get("a"), stored.get("b")) == ("a", "b")


def test_nothing_is_stored_where_the_limit_is_zero() -> None:
    stored = ResponseStore(0)
    stored.put("a", "a", 1)
    assert stored.get("a") is None
