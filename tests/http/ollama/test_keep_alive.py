"""`keep_alive`: seconds, and durations as Go's time.ParseDuration reads them."""

from math import inf
from typing import Any

import pytest

from lmwire_http.errors import ApiError
from lmwire_http.http.keep_alive import idle_limit


@pytest.mark.parametrize(
    ("given", "seconds"),
    [
        (None, None),
        (0, 0),
        (2.5, 2.5),
        (-1, inf),
        ("0", 0),
        ("300", 300),
        ("5m", 300),
        ("1h30m", 5400),
        ("1.5h", 5400),
        (".5s", 0.5),
        ("250ms", 0.25),
        ("2us", 2e-6),
        ("2µs", 2e-6),
        ("+10s", 10),
        ("-1", inf),
        ("-5m", inf),
    ],
)
def test_a_time_is_seconds_or_a_duration(given: Any, seconds: float | None) -> None:
    assert idle_limit(given) == (None if seconds is None else pytest.approx(seconds))


@pytest.mark.parametrize("given", ["", "m", "5 m", "5x", "--5m", "5m-", "1e3", "٣s", "1" * 20, "1s" * 9])
def test_other_texts_are_refused(given: str) -> None:
    with pytest.raises(ApiError) as error:
        idle_limit(given)
    assert (error.value.status, error.value.param) == (400, "keep_alive")
