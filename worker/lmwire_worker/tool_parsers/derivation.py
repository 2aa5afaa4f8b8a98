"""A format derived from calls as a chat template writes them, for a model whose calls no row of the table reads.

The calls have words that no template contains. What is around these words is the fixed text of the format: what stands
before the first call and again before the second belongs to a call, and what stands once belongs to the section. The
caller must check that the format reads the calls back.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from msgspec.structs import replace

from lmwire_protocol.imports import lazy_pattern

from .format import CallShape, ToolFormat, WrittenCall
from .json_calls import JsonCall
from .literals import CALL_ID, NUMBER, pattern_of
from .python_calls import PythonCall, call_text
from .table import PATH_NAME
from .tagged_calls import MIN_STREAMED_CHARACTERS, TaggedCall

NAME: Final = "derived"
"""Name of every derived format."""
MAX_CHARACTERS: Final = 4096
"""Maximum length of the text from which a format is derived."""
_LEXEME: Final = lazy_pattern(r"<[^<>\s]*>|\[/?\w+\]|\w+|\s|.", re.DOTALL)
_FIRST_TAG: Final = lazy_pattern(r"<[^<>\s]+>|\[/?\w+\]")
_FIRST_WORDS: Final = lazy_pattern(r"\[?[^\[{(]*")
_LAST_TAG: Final = lazy_pattern(r"(?:<[^<>\s]+>|\[/?\w+\]|[^\s\w\[\](){}\",:;]+)\Z")
_DISTINCT: Final = lazy_pattern(r"[^\w\s\[\](){}\",;]|\A\[/?\w")
_NUMBERS: Final = lazy_pattern(r"\d+")


class _Found(NamedTuple):
    """A call in a text: its place from its name to its last value, and its shape without the text around that."""

    start: int
    end: int
    shape: CallShape


def derive_formats(calls: Sequence[WrittenCall], text: str) -> Iterator[ToolFormat]:
    """Yield formats that may read calls of a text, the one that allows most first.

    Args:
        calls: One or two calls. The first has two arguments, and the second has one. All are texts.
        text: The text of these calls alone.
    """
    if len(text) > MAX_CHARACTERS or NUMBER in text:
        return
    for call in calls:
        text = text.replace(call.call_id, CALL_ID)
    for find in (_find_json, _find_tags, _find_python):
        first = find(text, calls[0], 0)
        if first is None:
            continue
        between = None
        last = first
        if len(calls) > 1:
            again = find(text, calls[1], first.end)
            if again is None:
                continue
            between, last = text[first.end : again.start], again
        shape = _numbered(first.shape, last.shape)
        if shape is not None:
            yield from _around(shape, text[: first.start], between, text[last.end :])


def _find_json(text: str, call: WrittenCall, start: int) -> _Found | None:
    """Find a name, and arguments in a JSON object after it."""
    members = r"\s*,\s*".join(rf'"{key}"\s*:\s*"{value}"' for key, value in call.arguments.items())
    arguments = re.compile(rf"\{{\s*{members}\s*\}}").search(text, start)
    if arguments is None or (name := text.rfind(call.name, start, arguments.start())) < 0:
        return None
    middle = text[name + len(call.name) : arguments.start()]
    spaced = '": "' in arguments[0]
    return _Found(name, arguments.end(), JsonCall("", middle, "", names=PATH_NAME, spaced=spaced))


def _find_tags(text: str, call: WrittenCall, start: int) -> _Found | None:
    """Find a name, and after it the name and the value of each argument between the same texts."""
    words = [word for item in call.arguments.items() for word in item]
    at = name = text.find(call.name, start)
    pieces: list[str] = []
    for word in (call.name, *words):
        found = text.find(word, at)
        if found < 0:
            return None
        pieces.append(text[at:found])
        at = found + len(word)
    _, first, middle, *rest = pieces
    head, tag, end = first, middle, ""
    if rest:  # what stands before each argument is its tag
        again, same = rest
        before = _common_end(first, again)
        if same != middle:
            return None
        head, end = first.removesuffix(before), again.removesuffix(before)
        tag = f"{before}{{}}{middle}"
    return _Found(name, at, TaggedCall(f"{{}}{head}", tag, end))


def _find_python(text: str, call: WrittenCall, start: int) -> _Found | None:
    """Find a call in Python."""
    written = call_text(call.name, call.arguments)
    at = text.find(written, start)
    return None if at < 0 else _Found(at, at + len(written), PythonCall())


def _numbered(first: CallShape, last: CallShape) -> CallShape | None:
    """Return the shape of two calls, whose text after the name may have their numbers; None if they differ."""
    match first, last:
        case JsonCall(), JsonCall():
            if first.middle == last.middle:
                return first
            numbers = _NUMBERS.findall(first.middle), _NUMBERS.findall(last.middle)
            middle = _NUMBERS.sub(NUMBER, first.middle)
            same = middle == _NUMBERS.sub(NUMBER, last.middle)
            return replace(first, middle=middle) if same and numbers == (["0"], ["1"]) else None
        case TaggedCall(), TaggedCall():
            same = first == last or (last.head + last.tag == first.head + first.tag.replace("{}", "", 1))
            return first if same else None
    return first


def _around(shape: CallShape, opening: str, between: str | None, closing: str) -> Iterator[ToolFormat]:
    """Yield formats of calls of a shape.

    Args:
        shape: The shape, from a call's name to its last value.
        opening: The text before the first call.
        between: The text between two calls; None if a turn has one call.
        closing: The text after the last call.
    """
    opened, closed = opening.lstrip(), closing.rstrip()
    own = isinstance(shape, JsonCall | TaggedCall)  # has text of its own around it
    if between is None:
        head, tail = opened, closed
    else:
        head = _common_end(opened, between) if own or between.endswith(opened) else ""
        tail = _common_start(between.removesuffix(head), closed) if own or head else ""
    if head == opened:  # each call is a section
        start, before = _split_start(opened)
        after, end = _split_end(tail)
        sections = None if between is None else between.removeprefix(tail).removesuffix(head)
        calls = None
        head, tail = (before.lstrip(), after.rstrip()) if own else ("", "")
        before, after = before.removesuffix(head), after.removeprefix(tail)
    else:
        start, before = _split_start(opened.removesuffix(head))
        after, end = _split_end(closed.removeprefix(tail))
        sections, calls = None, (between or "").removeprefix(tail).removesuffix(head)
    if len(start) < 3 or not _DISTINCT.search(start):
        return  # words of an answer could be taken for it
    for whole in _with_text(shape, head, tail, end):
        yield ToolFormat(NAME, start, end, whole, before, calls, after, sections)


def _with_text(shape: CallShape, head: str, tail: str, end: str) -> Iterator[CallShape]:
    """Yield a shape with the text before and after a call."""
    match shape:
        case JsonCall():
            named = replace(shape, before=head, after=tail)
            if head.endswith('"') and shape.middle.startswith('"'):
                yield replace(named, before=head[:-1], middle=shape.middle[1:], names=None)
            yield named
        case TaggedCall():
            if not tail.startswith(shape.end) and tail:
                return
            fixed = (head, shape.head.replace("{}", "", 1), shape.tag.replace("{}", "", 1), shape.end, tail)
            rest = tail.removeprefix(shape.end)
            if any("{" in text for text in fixed) or not shape.end.strip() or "{}" not in shape.tag:
                return
            if len(shape.end) > MIN_STREAMED_CHARACTERS:
                return
            whole = replace(shape, head=head + shape.head, tail=rest, excluded=(end,) if end else ())
            if not shape.head.removeprefix("{}").strip():  # the next text ends the name
                following = "|".join(filter(None, (pattern_of(whole.tag.partition("{}")[0]), pattern_of(rest))))
                name = r"\s*(?P<function>[^\s<>\"']+?)\s*"
                opened = pattern_of(head) or r"\A"
                alone = not head and not rest
                whole = replace(whole, head_pattern=f"{opened}{name}(?={following or '$'})", untagged=alone)
            yield whole
        case _:
            yield shape


def _split_start(text: str) -> tuple[str, str]:
    """Return the marker at the start of a text, and the rest."""
    tag = _FIRST_TAG.match(text)
    words = _FIRST_WORDS.match(text)
    marker = tag[0] if tag else words[0].rstrip() if words else ""
    return marker, text[len(marker) :]


def _split_end(text: str) -> tuple[str, str]:
    """Return a text without the marker at its end, and the marker; empty if there is none."""
    tag = _LAST_TAG.search(text)
    return (text[: tag.start()], tag[0]) if tag else (text, "")


def _common_start(one: str, other: str) -> str:
    """Return the tags, words and signs with which two texts start."""
    common = ""
    for left, right in zip(_LEXEME.findall(one), _LEXEME.findall(other), strict=False):
        if left != right:
            break
        common += left
    return common


def _common_end(one: str, other: str) -> str:
    """Return the tags, words and signs with which two texts end."""
    common = ""
    for left, right in zip(reversed(_LEXEME.findall(one)), reversed(_LEXEME.findall(other)), strict=False):
        if left != right:
            break
        common = left + common
    return common
