"""Calls with each parameter between tags: `<parameter=city>Paris</parameter>`.

Each argument is reported when it is complete, and long strings as they come. No text between tags is lost.
"""

import re
from collections.abc import Generator, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

from msgspec import Struct

from lmwire_protocol import Tool
from lmwire_protocol.imports import lazy_pattern
from lmwire_protocol.messages import Function

from .base import Fragments, GeneratorParser
from .format import ToolCallParser, WrittenCall
from .json_calls import DescribedCall, read_call
from .literals import NUMBER, pattern_of
from .objects import read_object, write_value
from .values import Kinds, kind_of, kinds_of, read_text, write_text

MIN_STREAMED_CHARACTERS: Final = 32
"""Length from which a string is streamed, in characters. Not shorter than a tag, or than `null`."""

_WRAPPERS: Final = frozenset({"arguments", "input", "parameters", "properties"})
"""Names under which some models put all arguments, as an object. A parameter of such a name goes first."""
_STREAMED_KINDS: Final = frozenset({"string", "null", "boolean"})
"""Types of parameters whose long values are certainly strings."""
_STRING: Final = frozenset({"string"})
_INK: Final = lazy_pattern(r"\S")
_CDATA: Final = lazy_pattern(r"\s*<!\[CDATA\[(?P<text>.*?)\]\]>\s*", re.DOTALL)
_ATTRIBUTE_ESCAPES: Final = (("&quot;", '"'), ("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&"))


class TaggedCall(Struct, frozen=True):
    """A call with separate parameters after the name. Strings are unquoted, and other values are JSON.

    A line break at the end of `tag` or the start of `end` is not part of a value. All other white space is.
    """

    head: str
    """Text before the parameters, with `{}` for the function's name and `literals.NUMBER` for the call's number."""
    tag: str
    """Text before a value, with `{}` for the parameter's name. `{kind}` is its type, `number` for an integer too, and
    `{string}` is `true` for a string and `false` for other values."""
    end: str
    """Text after a value."""
    tail: str = ""
    """Text after the parameters; empty if the section's end ends the call."""
    excluded: tuple[str, ...] = ()
    """Texts that a string must not contain, besides its end, because they would end it for the parser."""
    head_pattern: str = ""
    """Pattern of `head` with the group `function`; empty to derive it. More text never extends a match."""
    tag_pattern: str = ""
    """Pattern of `tag` with the group `parameter`, and `kind` or `string`; empty to derive it. A match with a group
    `whole` starts a JSON object of all arguments."""
    end_pattern: str = ""
    """Pattern of `end`, of at most MIN_STREAMED_CHARACTERS from its first character on; empty to derive it."""
    untagged: bool = False
    """A section may be a function's name alone."""
    recovers: bool = True
    """A value may lack its end. The next tag of a parameter, or the call's end, then ends it. If `tag` ends with a line
    break, the next tag must start a line. The section's end marker may stand for `tail`."""
    cdata: bool = False
    """A string with special characters stands in a CDATA block."""

    def make_parser(self, tools: Sequence[Tool]) -> ToolCallParser:
        """Return a parser of one section; see `CallShape`."""
        return _TaggedParser(self, tools)

    def write(self, call: WrittenCall, index: int) -> str:
        """Return the text of a call; see `CallShape`."""
        head = self.head.replace("{}", call.name).replace(NUMBER, str(index + 1))
        return head + "".join(self._write(*item) for item in call.arguments.items()) + self.tail

    def open_tag(self, name: str, kind: str) -> str:
        """Return the text before a value.

        Args:
            name: The parameter's name.
            kind: The value's type.
        """
        named = "number" if kind == "integer" else kind
        texts = {"{}": name, "{kind}": named, "{string}": "true" if kind == "string" else "false"}
        return re.sub(r"\{\w*\}", lambda place: texts[place[0]], self.tag)

    def _write(self, name: str, value: Any) -> str:
        text = write_text(value)
        if self.cdata and re.search(r"[<&\n]", text):
            text = f"<![CDATA[{text}]]>"
        return f"{self.open_tag(name, kind_of(value))}{text}{self.end}"


class _Patterns(NamedTuple):
    """The patterns of a shape, and the last characters of their matches."""

    head: re.Pattern[str]
    tag: re.Pattern[str]
    end: re.Pattern[str]
    last: str

    @classmethod
    @lru_cache
    def of(cls, call: TaggedCall) -> "_Patterns":
        name = r"[^\s<>\"']+?"
        head = call.head_pattern or pattern_of(call.head, **{"": rf"\s*(?P<function>{name})\s*"})
        groups = {"": rf"\s*(?P<parameter>{name})\s*", "kind": r"(?P<kind>\w*)", "string": r"(?P<string>\w*)"}
        tag = call.tag_pattern or pattern_of(call.tag, **groups)
        tail = pattern_of(call.tail) or "(?!)"
        nested = re.sub(r"\?P<(\w+)>", r"?P<next_\1>", head)
        end = call.end_pattern or pattern_of(call.end)
        last = "".join({text.rstrip()[-1:] for text in (call.head, call.tag, call.end, call.tail)} | {">"})
        return cls(re.compile(head), re.compile(f"(?P<end>{tail})|{tag}|{nested}"), re.compile(end), last)


class _TaggedParser(GeneratorParser):
    """Parses calls between tags.

    Args:
        call: The shape of the calls.
        tools: The request's tools.
    """

    def __init__(self, call: TaggedCall, tools: Sequence[Tool]) -> None:
        self._shape = call
        self._head, self._tag, self._value_end, self.trigger = _Patterns.of(call)
        super().__init__(tools)
        self._kinds = {name: _parameter_kinds(function) for name, function in self.tools.items()}

    def parse(self) -> Fragments:
        """Parse the calls."""
        head = yield from self.find(self._head, 0)
        if head is None and self.is_closed:
            yield from self._read_untagged()
        while head:
            yield self.start_call(_unescape(head["function"]))
            head = yield from self._read_call(head)

    def _read_call(self, head: re.Match[str]) -> Generator[Any, None, re.Match[str] | None]:
        """Parse a call from its head on. Return the next call's head, or None if the section ends."""
        at, separator = head.end(), "{"
        while (tag := (yield from self.find(self._tag, at))) and _starts_value(tag) and self._blank(at, tag.start()):
            end = yield from self._read_parameter(head, tag, separator)
            if end is None or not self.has_open_call:
                return None if end is None else (yield from self.find(self._head, end))
            at, separator = end, "," if self._arguments else "{"
        end, after = tag.span() if tag else (len(self.text), len(self.text))
        whole = bool(tag["end"]) if tag else self._ends_with_section
        if whole and self._blank(at, end):
            yield self.add_arguments("}" if self._arguments else "{}")
            yield self.finish_call(head.start(), after)
        else:
            yield self.fail_call()
        return (yield from self.find(self._head, after if whole else end))

    def _read_parameter(
        self, head: re.Match[str], tag: re.Match[str], separator: str
    ) -> Generator[Any, None, int | None]:
        """Parse a parameter from its tag on, and fail the call if it is invalid.

        Returns:
            The end of the parameter; None if the section ends inside it.
        """
        function = _unescape(head["function"])
        end_pattern = self._end_pattern(function)
        start, sent = yield from self._stream_string(function, tag, separator, end_pattern)
        close = yield from self._find_end(end_pattern, tag.end())
        if close is None:
            return None
        text = self.text[self._trimmed(tag.end()) : close.start]
        if self._shape.end.startswith("\n") or close.after == close.start:
            text = text.removesuffix("\n")
        arguments = self._read_arguments(function, tag, text)
        value = next(iter(arguments.values()), None)
        if not sent and arguments:
            yield self.add_arguments(separator + write_value(arguments)[1:-1])
        elif sent and isinstance(value, str) and value.startswith(self.text[start:sent]):
            yield self.add_arguments(_escape(value[sent - start :]) + '"')
        elif sent or "whole" not in tag.re.groupindex or not tag["whole"] or read_object(text) is None:
            yield self.fail_call()
        return close.after

    def _read_arguments(self, function: str, tag: re.Match[str], text: str) -> dict[str, Any]:
        """Return the argument of a tag, or all arguments of the call; empty if JSON has no such values."""
        if "whole" in tag.re.groupindex and tag["whole"]:
            return read_object(text) or {}
        name = _unescape(tag["parameter"]).strip()
        value = self._read_value(text, self._kinds_of(function, name, tag))
        known = self._kinds.get(function, {})
        arguments = {name: value}
        if name in _WRAPPERS and name not in known:
            inner = value if isinstance(value, dict) else read_object(text)
            arguments = inner if inner and inner.keys() <= known.keys() else arguments
        try:
            return arguments if read_object(write_value(arguments)) is not None else {}
        except (ValueError, TypeError, RecursionError):
            return {}

    def _read_value(self, text: str, kinds: Kinds | None) -> Any:
        if self._shape.cdata and (block := _CDATA.fullmatch(text)):
            return block["text"] if kinds is None or "string" in kinds else read_text(block["text"], kinds)
        return read_text(text, kinds)

    def _kinds_of(self, function: str, parameter: str, tag: re.Match[str]) -> Kinds | None:
        """Return the possible types of an argument, of those in the schema. A tag that names one chooses among them."""
        declared = self._kinds.get(function, {}).get(parameter)
        groups = tag.groupdict()
        if (is_string := groups.get("string") or groups.get("kind")) is None:
            return declared
        if is_string in ("true", "string"):
            return declared if declared and "string" not in declared else _STRING
        return declared - _STRING or declared if declared else None

    def _stream_string(
        self, function: str, tag: re.Match[str], separator: str, end_pattern: re.Pattern[str]
    ) -> Generator[Any, None, tuple[int, int]]:
        """Stream a long string. Return the start and the end of the text that was streamed."""
        start = sent = 0
        if "whole" in tag.re.groupindex and tag["whole"]:
            return start, sent
        name = _unescape(tag["parameter"]).strip()
        kinds = self._kinds_of(function, name, tag)
        if self._shape.cdata or kinds is None or not kinds <= _STREAMED_KINDS:
            return start, sent
        longest = MIN_STREAMED_CHARACTERS
        if self._shape.recovers:
            longest += len(self._shape.tag) + max(map(len, self._kinds.get(function, ())), default=0)
        searched = tag.end()
        while not end_pattern.search(self.text, searched) and not self.is_over:
            settled = _settled(self.text, tag.end(), longest, self._shape.end.strip()[0])
            if not sent and "string" in kinds and settled - tag.end() >= MIN_STREAMED_CHARACTERS:
                start = sent = self._trimmed(tag.end())
                yield self.add_arguments(f'{separator}{write_value(name)}:"')
            if sent and settled > sent:
                yield self.add_arguments(_escape(self.text[sent:settled]))
                sent = settled
            searched = max(searched, settled)
            yield None
        return start, sent

    def _find_end(self, pattern: re.Pattern[str], start: int) -> Generator[None, None, "_End | None"]:
        """Wait for the end of the value that starts at `start`, and return it, or None if the section ends inside."""
        while match := (yield from self.find(pattern, start)):
            value = self.text[start : match.start()]
            is_whole = not self._shape.cdata or value.count("<![CDATA[") <= value.count("]]>")
            if is_whole and (not match[0] or (yield from self._is_followed_by_tag(match.end()))):
                return _End(match.start(), match.end())
            start = max(match.end(), start + 1)
        if self._shape.recovers and (self.is_closed if self._shape.tail else self.is_marked):
            tail = re.compile(rf"\s*{pattern_of(self._shape.tail)}\s*\Z").search(self.text, start)
            if tail is None and self.is_marked:
                tail = re.compile(r"\s*\Z").search(self.text, start)
            return _End(tail.start(), tail.start()) if tail else None
        return None

    def _is_followed_by_tag(self, at: int) -> Generator[None, None, bool]:
        """Wait for the text after a value's end, and return whether it is a tag. Otherwise, the end is quoted."""
        while (following := _INK.search(self.text, at)) is None and not self.is_over:
            at = len(self.text)
            yield None
        shape = self._shape
        firsts = {text.strip()[:1] for text in (shape.end, shape.tag, shape.tail, shape.head)}
        return following is None or following[0] in firsts or shape.tag.strip().startswith("{")

    @property
    def _ends_with_section(self) -> bool:
        """Return whether the section's end is also that of the open call."""
        if self._shape.tail:
            return self._shape.recovers and self.is_marked and bool(self._arguments)
        return self.is_closed

    def _end_pattern(self, function: str) -> re.Pattern[str]:
        """Return the pattern of a value's end."""
        kinds = self._kinds.get(function)
        return _with_recovery(self._shape, tuple(kinds)) if self._shape.recovers and kinds else self._value_end

    def _read_untagged(self) -> Fragments:
        """Parse a section without tags: a function's name alone, or a JSON object that describes a call.

        The call must be of one of the request's functions.
        """
        text = self.text.strip()
        call = read_call(text) or (DescribedCall(text, {}) if self._shape.untagged else None)
        if call and call.name in self.tools:
            yield from self.add_whole_call(0, len(self.text), *call)

    def _trimmed(self, start: int) -> int:
        """Return the start of a value, after the line break of its tag."""
        return start + int(self._shape.tag.endswith("\n") and self.text.startswith("\n", start))

    def _blank(self, start: int, end: int) -> bool:
        """Return whether a text has nothing but white space and ends of values, which models may write twice."""
        text = self.text[start:end]
        return not (self._value_end.sub("", text) if self._shape.recovers else text).strip()


class _End(NamedTuple):
    """The end of a value, and the end of its tag."""

    start: int
    after: int


@lru_cache(maxsize=64)
def _with_recovery(call: TaggedCall, names: tuple[str, ...]) -> re.Pattern[str]:
    """Return the pattern of a value's end, which may be the start of another of these parameters instead."""
    following = "|".join(map(re.escape, names))
    tag = pattern_of(call.tag, **{"": f"(?:{following})", "kind": r"\w*", "string": r"\w*"})
    tag = rf"\n{tag}" if call.tag.endswith("\n") else tag
    return re.compile(rf"{_Patterns.of(call).end.pattern}|(?={tag})")


def _starts_value(tag: re.Match[str]) -> bool:
    groups = tag.groupdict()
    return bool(groups.get("parameter") or groups.get("whole"))


def _parameter_kinds(function: Function) -> dict[str, Kinds | None]:
    """Return the types of a function's parameters by name."""
    properties = function.parameters.get("properties")
    if not isinstance(properties, dict):
        return {}
    return {name: kinds_of(schema, function.parameters) for name, schema in properties.items()}


def _settled(text: str, start: int, longest: int, mark: str) -> int:
    """Return the end of the certain part of a value: without white space, or a tag that may close it, at its end.

    Args:
        text: The text so far.
        start: The start of the value.
        longest: Length of the longest text that may close the value, in characters.
        mark: The first character of that text.
    """
    tag = text.find(mark, max(start, len(text) - longest))
    return start + len(text[start : tag if tag >= 0 else len(text)].rstrip())


def _unescape(text: str) -> str:
    for escape, character in _ATTRIBUTE_ESCAPES:
        text = text.replace(escape, character)
    return text


def _escape(text: str) -> str:
    return write_value(text)[1:-1]
