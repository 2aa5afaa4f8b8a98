"""Stop strings against the plainest way to look for them: in the whole text."""

from hypothesis import given
from hypothesis import strategies as st

from lmwire_worker.text.stops import StopScanner, StopStrings

letters = st.text("ab", max_size=30)
stop_strings = st.lists(st.text("ab", min_size=1, max_size=6), min_size=1, max_size=4)


def plainly(text: str, stops: list[str]) -> tuple[str, str | None]:
    """The match that ends first, and of those the longest; the text before it."""
    for end in range(1, len(text) + 1):
        for stop in sorted(stops, key=len, reverse=True):
            if text[:end].endswith(stop):
                return text[: end - len(stop)], stop
    return text, None


@given(st.lists(letters, max_size=12), stop_strings)
def test_pieces_give_what_the_whole_text_gives(pieces: list[str], stops: list[str]) -> None:
    scanner = StopScanner(StopStrings(stops))
    shown = ""
    for piece in pieces:
        text, stop = scanner.push(piece)
        shown += text
        if stop is not None:
            assert (shown, stop) == plainly("".join(pieces), stops)
            return
    assert (shown + scanner.flush(), None) == plainly("".join(pieces), stops)


@given(st.lists(letters, max_size=12), stop_strings)
def test_nothing_is_shown_that_may_become_part_of_a_stop_and_nothing_else_is_held(
    pieces: list[str], stops: list[str]
) -> None:
    scanner = StopScanner(StopStrings(stops))
    seen = shown = ""
    for piece in pieces:
        text, stop = scanner.push(piece)
        seen, shown = seen + piece, shown + text
        if stop is not None:
            return
        held = max((size for string in stops for size in range(len(string)) if seen.endswith(string[:size])), default=0)
        assert shown == seen[: len(seen) - held]


def test_a_stop_inside_a_longer_one_that_does_not_come_is_found() -> None:
    scanner = StopScanner(StopStrings(["abcd", "bc"]))
    assert scanner.push("ab") == ("", None)
    assert scanner.push("c") == ("a", "bc")


def test_any_unicode_can_stop() -> None:
    scanner = StopScanner(StopStrings(["é🎉\n"]))
    assert scanner.push("cafe é🎉") == ("cafe ", None)
    assert scanner.push("\n and on") == ("", "é🎉\n")
