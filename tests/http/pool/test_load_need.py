"""The memory that a load needs, before a worker is started."""

import pytest

from lmwire import RequestFailed
from lmwire_http.pool.memory_budget import LoadNeed
from lmwire_http.pool.model_resolver import ModelSpec
from lmwire_protocol import events

UNLISTED = ModelSpec(id="m", path="m")
LISTED = ModelSpec(id="m", path="m", size_bytes=2000, load_bytes=3000)
REFUSAL = RequestFailed(events.Error(id="1", code="out_of_memory", error="too large", retryable=False))


def described(weights: int) -> events.ModelDone:
    return events.ModelDone(
        id="1",
        path="m",
        model_type="llama",
        vocab_size=10,
        layers=1,
        hidden_size=1,
        context_len=10,
        weights_bytes=weights,
        capabilities=[],
    )


def test_the_listing_says_what_a_load_needs() -> None:
    assert LoadNeed().bytes(LISTED) == 3000
    assert LoadNeed().bytes(UNLISTED) == 0


def test_a_model_that_is_not_listed_is_known_after_its_first_load() -> None:
    need = LoadNeed()
    need.record_loaded(described(5000))
    assert need.bytes(UNLISTED) == 5000 + 4 * 1024
    assert need.bytes(LISTED) == 3000


def test_after_a_refusal_a_load_needs_more_than_the_worker_had() -> None:
    need = LoadNeed()
    need.record_refusal(4000)
    need.record_refusal(3500)
    assert need.bytes(LISTED) == need.bytes(UNLISTED) == 4001


def test_a_final_refusal_holds_for_a_while_or_until_a_load_succeeds() -> None:
    need = LoadNeed()
    need.record_final_refusal(REFUSAL, 100.0)
    with pytest.raises(RequestFailed, match="too large"):
        need.check(109.0)
    need.check(111.0)
    need.record_final_refusal(REFUSAL, 120.0)
    need.record_loaded(described(1))
    need.check(121.0)


@pytest.mark.parametrize(
    ("size", "load", "least"),
    [(2000, 3000, 2000), (9000, 3000, 3000), (2000, 0, 2000), (0, 0, 0)],
)
def test_files_that_no_load_reads_do_not_count(size: int, load: int, least: int) -> None:
    assert ModelSpec(id="m", path="m", size_bytes=size, load_bytes=load).min_load_bytes == least
