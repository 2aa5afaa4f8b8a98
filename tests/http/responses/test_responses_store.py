"""The store of responses is limited in number and in bytes, and is divided by caller."""

from lmwire_http.http.response_store import ResponseStore


def put(store: ResponseStore, caller: str, ids: str, size: int = 1) -> None:
    for id in ids:
        store.put(caller, id, id.upper(), size)


def found(store: ResponseStore, caller: str, ids: str) -> str:
    return "".join(store.get(caller, id) or "-" for id in ids)


def test_the_oldest_is_dropped_for_one_too_many() -> None:
    stored = ResponseStore(2)
    put(stored, "ada", "abc")
    assert found(stored, "ada", "abc") == "-BC"


def test_the_oldest_are_dropped_for_one_that_needs_their_memory() -> None:
    stored = ResponseStore(100, max_bytes=10)
    put(stored, "ada", "ab", size=4)
    put(stored, "ada", "c", size=9)
    assert found(stored, "ada", "abc") == "--C"


def test_a_response_over_the_limit_is_not_stored_and_drops_nothing() -> None:
    stored = ResponseStore(100, max_bytes=10)
    put(stored, "ada", "a", size=4)
    put(stored, "ada", "b", size=11)
    assert found(stored, "ada", "ab") == "A-"


def test_a_dropped_response_frees_its_memory() -> None:
    stored = ResponseStore(100, max_bytes=10)
    put(stored, "ada", "a", size=6)
    assert stored.delete("ada", "a")
    assert not stored.delete("ada", "a")
    put(stored, "ada", "b", size=6)
    put(stored, "ada", "c", size=4)
    assert found(stored, "ada", "bc") == "BC"


def test_a_response_stored_again_counts_once() -> None:
    stored = ResponseStore(100, max_bytes=10)
    put(stored, "ada", "aaa", size=6)
    put(stored, "ada", "b", size=4)
    assert found(stored, "ada", "ab") == "AB"


def test_nothing_is_stored_where_the_limit_is_zero() -> None:
    stored = ResponseStore(0)
    put(stored, "ada", "a")
    assert found(stored, "ada", "a") == "-"


def test_a_caller_finds_and_deletes_only_its_own() -> None:
    stored = ResponseStore(9)
    stored.put("ada", "a", "A", 1, {"item": "I"})
    assert stored.get("alan", "a") is None
    assert stored.item("alan", "item") is None
    assert not stored.delete("alan", "a")
    assert (stored.get("ada", "a"), stored.item("ada", "item")) == ("A", "I")


def test_items_are_deleted_with_their_response() -> None:
    stored = ResponseStore(1)
    stored.put("ada", "a", "A", 1, {"item": "I"})
    put(stored, "ada", "b")
    assert stored.item("ada", "item") is None


def test_the_caller_with_the_most_responses_loses_one() -> None:
    stored = ResponseStore(6)
    put(stored, "ada", "ab")
    put(stored, "alan", "cdefghij")
    assert found(stored, "ada", "ab") == "AB"
    assert found(stored, "alan", "cdefghij") == "----GHIJ"
    put(stored, "ada", "klmn")
    assert found(stored, "ada", "abklmn") == "---LMN"
    assert found(stored, "alan", "ghij") == "-HIJ"


def test_the_caller_with_the_most_bytes_loses_some() -> None:
    stored = ResponseStore(100, max_bytes=10)
    put(stored, "ada", "ab", size=2)
    put(stored, "alan", "cde", size=3)
    assert found(stored, "ada", "ab") + found(stored, "alan", "cde") == "AB-DE"


def test_with_more_callers_than_responses_none_loses_its_only_one_to_a_flood() -> None:
    stored = ResponseStore(2)
    put(stored, "ada", "a")
    put(stored, "grace", "b")
    put(stored, "alan", "cdefg")
    assert found(stored, "ada", "a") + found(stored, "grace", "b") + found(stored, "alan", "g") == "-BG"
