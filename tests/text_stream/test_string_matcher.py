"""Strings in a stream of text, against the plainest way to look for them: in the whole text."""

from hypothesis import given
from hypothesis import strategies as st

from lmwire_worker.text_stream.string_matcher import StringAutomaton, StringMatcher

letters = st.text("ab", max_size=30)
some_strings = st.lists(st.text("ab", min_size=1, max_size=6), min_size=1, max_size=4)


def plainly(text: str, strings: list[str]) -> tuple[str, str | None]:
    """The match that ends first, and of those the longest; the text before it."""
    for end in range(1, len(text) + 1):
        for string in sorted(strings, key=len, reverse=True):
            if text[:end].endswith(string):
                return text[: end - len(string)], string
    return text, None


@given(st.lists(letters, max_size=12), some_strings)
def test_parts_give_the_same_as_the_whole_text(parts: list[str], strings: list[str]) -> None:
    scanner = StringMatcher(StringAutomaton(strings))
    shown = ""
    for part in parts:
        text, found = scanner.push(part)
        shown += text
        if found is not None:
            assert (shown, found) == plainly("".join(parts), strings)
            return
    assert (shown + scanner.flush(), None) == plainly("".join(parts), strings)


@given(st.lists(letters, max_size=12), some_strings)
def test_only_text_that_may_become_part_of_a_string_is_held_back(parts: list[str], strings: list[str]) -> None:
    scanner = StringMatcher(StringAutomaton(strings))
    seen = shown = ""
    for part in parts:
        text, found = scanner.push(part)
        seen, shown = seen + part, shown + text
        if found is not None:
            return
        withheld = max(
            (size for string in strings for size in range(len(string)) if seen.endswith(string[:size])), default=0
        )
        assert shown == seen[: len(seen) - withheld]


def test_a_string_inside_a_longer_one_that_does_not_come_is_found() -> None:
    scanner = StringMatcher(StringAutomaton(["abcd", "bc"]))
    assert scanner.push("ab") == ("", None)
    assert scanner.push("c") == ("a", "bc")


def test_any_unicode_can_be_found() -> None:
    scanner = StringMatcher(StringAutomaton(["é🎉\n"]))
    assert scanner.push("cafe é🎉") == ("cafe ", None)
    assert scanner.push("\n and on") == ("", "é🎉\n")


def test_after_a_match_it_starts_again() -> None:
    scanner = StringMatcher(StringAutomaton(["ab"]))
    assert scanner.push("xaby") == ("x", "ab")
    assert scanner.rest == "y"
    assert scanner.push("ab") == ("", "ab")
    assert scanner.rest == ""
    assert scanner.push("b") == ("b", None)
    assert scanner.rest == ""
