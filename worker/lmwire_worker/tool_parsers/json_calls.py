"""Calls with arguments in one JSON object, which is streamed as it comes."""

import json
import re
from collections.abc import Generator, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

from msgspec import Struct

from lmwire_protocol import Tool
from lmwire_protocol.imports import lazy_pattern

from .base import Fragments, GeneratorParser
from .format import ToolCallParser, WrittenCall
from .literals import CALL_ID, NUMBER, pattern_of
from .objects import ObjectEnd, read_object

_STRING: Final = r'"(?:[^"\\]|\\.)+"'
_OPENING: Final = lazy_pattern(
    rf'\{{\s*(?:"type"\s*:\s*{_STRING}\s*,\s*|"(?:tool_call_)?id"\s*:\s*(?P<id>{_STRING})\s*,\s*)*'
    rf'"(?:tool_)?name"\s*:\s*(?P<name>{_STRING})\s*,\s*"(?:arguments|parameters)"\s*:\s*(?=\{{)',
    re.DOTALL,
)
"""A call's object up to its arguments, if they come last. In any other order, the call is not streamed."""


class DescribedCall(NamedTuple):
    """A call that a JSON object describes."""

    name: str
    arguments: dict[str, Any]
    call_id: str | None = None


def read_call(text: str) -> DescribedCall | None:
    """Return the call that a JSON object describes, or None.

    Accepts `{"name", "arguments"}`, or `parameters` for `arguments`, both inside `function` as in OpenAI's API, and the
    name alone in `function` or `tool_name`. Arguments may be JSON text, or be missing.
    """
    call = read_object(text)
    if call is None:
        return None
    function = call.get("function", call)
    name, holder = (function.get("name"), function) if isinstance(function, dict) else (function, call)
    name = call.get("tool_name") if name is None else name
    arguments = holder.get("arguments", holder.get("parameters"))
    if isinstance(arguments, str):
        arguments = read_object(arguments)
    elif arguments is None:
        arguments = {}
    call_id = call.get("id", call.get("tool_call_id"))
    if not isinstance(name, str) or not name or not isinstance(arguments, dict):
        return None
    return DescribedCall(name, arguments, call_id if isinstance(call_id, str) and call_id else None)


class _Opening(NamedTuple):
    """The start of a call whose arguments can be streamed."""

    name: str
    call_id: str | None
    end: int

    @classmethod
    def find(cls, text: str, start: int) -> "_Opening | None":
        match = _OPENING.match(text, start)
        call = match and read_call(match[0] + "{}}")
        return cls(call.name, call.call_id, match.end()) if match and call else None


class JsonParser(GeneratorParser):
    """Parses objects that describe a call, alone or in a list: `{"name": "f", "arguments": {}}`.

    Subclasses add calls with the name before the object of arguments.
    """

    trigger = "{"
    closing = lazy_pattern(r"\s*\]")
    streams_objects = True
    """Report a call that an object describes as it comes. Otherwise, its id may follow the arguments."""
    head: re.Pattern[str] = lazy_pattern(r"\{")
    """The start of a call: an object that describes it, or its `name` (and `id`) before its arguments."""

    def accepts(self, name: str) -> bool:
        """Return whether a call of this function counts."""
        return True

    def parse(self) -> Fragments:
        """Parse the calls."""
        at: int | None = 0
        while at is not None and (head := (yield from self.find(self.head, at))):
            groups = head.groupdict()
            if groups.get("name"):
                yield self.start_call(groups["name"], groups.get("id"))
                at = yield from self._stream_arguments(head.end())
                if at is not None:
                    yield self.finish_call(head.start(), at)
            else:
                at = yield from self._read_object(head.start())

    def _read_object(self, start: int) -> Generator[Any, None, int | None]:
        """Parse an object that describes a call. Return its end, or None if the section ends inside it."""
        whole = ObjectEnd(start)
        while (opening := self._find_opening(start)) is None and whole.find(self.text) is None:
            if self.is_over:
                return None
            yield None
        if opening and self.accepts(opening.name):
            yield self.start_call(opening.name, opening.call_id)
            yield from self._stream_arguments(opening.end)
        while (end := whole.find(self.text)) is None:
            if self.is_over:
                return None
            yield None
        call = read_call(self.text[start:end])
        if opening and self.has_open_call:
            agrees = call is not None and (call.name, call.arguments) == (opening.name, self.arguments_so_far())
            yield self.finish_call(start, end) if agrees else self.fail_call()
        elif call and self.accepts(call.name):
            yield from self.add_whole_call(start, end, *call)
        return end

    def _find_opening(self, start: int) -> _Opening | None:
        return _Opening.find(self.text, start) if self.streams_objects else None

    def _stream_arguments(self, start: int) -> Generator[Any, None, int | None]:
        """Stream the object of arguments. Return its end, or None if the section ends inside it."""
        arguments, given = ObjectEnd(start), start
        while (end := arguments.find(self.text)) is None:
            if given < len(self.text):
                yield self.add_arguments(self.text[given:])
                given = len(self.text)
            if self.is_over:
                return None
            yield None
        yield self.add_arguments(self.text[given:end])
        return end


class _NamedParser(JsonParser):
    """Parses calls with a name before the object of arguments, between the fixed texts of a format.

    Args:
        call: The shape of the calls.
        tools: The request's tools.
    """

    def __init__(self, call: "JsonCall", tools: Sequence[Tool]) -> None:
        self.head, self.separators = _patterns(call)
        super().__init__(tools)


class JsonCall(Struct, frozen=True):
    """A call with its arguments in one JSON object, after the name: an object that describes it, or other text.

    The texts may have `literals.NUMBER` for the call's number and `literals.CALL_ID` for its id.
    """

    before: str = '{"name": '
    """Text before the name."""
    middle: str = ', "arguments": '
    """Text between the name and the object."""
    after: str = "}"
    """Text after the object."""
    names: re.Pattern[str] | None = None
    """Pattern of the names that can be written unquoted; None if names are JSON strings in an object."""
    spaced: bool = True
    """The object has a space after each comma and colon, as in most chat templates."""
    parser: type[JsonParser] | None = None
    """The parser, if it accepts more than these texts; None to derive it."""
    other_middles: tuple[str, ...] = ()
    """Texts that may stand in place of `middle`. The model may choose; past calls are written with `middle`."""

    def make_parser(self, tools: Sequence[Tool]) -> ToolCallParser:
        """Return a parser of one section; see `CallShape`."""
        if self.parser is not None:
            return self.parser(tools)
        if self.names is not None:
            return _NamedParser(self, tools)
        parser = JsonParser(tools)
        parser.separators = _separators(self.before.partition("{")[0], self.after.partition("}")[2])
        return parser

    def write(self, call: WrittenCall, index: int) -> str:
        """Return the text of a call; see `CallShape`."""
        name = json.dumps(call.name, ensure_ascii=False) if self.names is None else call.name
        separators = None if self.spaced else (",", ":")
        arguments = json.dumps(call.arguments, ensure_ascii=False, separators=separators)
        head, after = (
            text.replace(NUMBER, str(index)).replace(CALL_ID, call.call_id)
            for text in (f"{self.before}{name}{self.middle}", self.after)
        )
        return f"{head}{arguments}{after}"


@lru_cache
def _separators(before: str, after: str) -> re.Pattern[str]:
    """Return the pattern of the text between calls: what stands before and after each of them."""
    marks = "".join(f"|{pattern_of(text)}" for text in (before, after) if text.strip())
    return re.compile(rf"(?:[\s,;\[\]]{marks})*")


@lru_cache
def _patterns(call: JsonCall) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return the patterns of a call's head, and of the text between calls."""
    name = r"(?P<name>[^\s<>{}\[\]()|｜\"']{1,128})"
    start = pattern_of(call.before) or r"\A"
    head = rf"{start}\s*{name}\s*{pattern_of(call.middle)}\s*(?=\{{)"
    return re.compile(head), re.compile(rf"(?:[\s,;`\[\]]|{pattern_of(call.after) or '(?!)'})*")


class MistralParser(JsonParser):
    """Parses `f[ARGS]{}`, with an optional `[CALL_ID]` before the arguments, and lists of objects."""

    head = lazy_pattern(r"\{|(?<![\w.-])(?P<name>[\w.-]{1,128})\s*(?:\[CALL_ID\]\s*(?P<id>\w+)\s*)?\[ARGS\]\s*(?=\{)")
    separators = lazy_pattern(r"(?:[\s,;\[\]]|\[TOOL_CALLS\])*")


class NemoParser(MistralParser):
    """Parses lists of objects whose ids follow the arguments: `[{"name": "f", "arguments": {}, "id": "a1b2c3d4e"}]`."""

    streams_objects = False


class RepeatedJsonParser(JsonParser):
    """Parses objects that each follow the start marker `<function_call>`."""

    separators = lazy_pattern(r"(?:[\s,;\[\]]|<function_call>)*")


class KimiParser(JsonParser):
    """Parses `<|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{}<|tool_call_end|>`."""

    head = lazy_pattern(
        r"(?:<\|tool_call_begin\|>\s*)?(?<![^\s>])(?P<id>(?:functions\.)?(?P<name>[^\s<>:]{1,128}):\d+)\s*"
        r"<\|tool_call_argument_begin\|>\s*(?=\{)"
    )
    separators = lazy_pattern(r"(?:\s|<\|tool_call_end\|>)*")


class HarmonyParser(JsonParser):
    """Parses one message to a tool, with or without its header: `functions.f <|constrain|>json<|message|>{}`."""

    head = lazy_pattern(
        r"\A(?:[^{]{0,200}?\bto=|\s*)(?:functions\.)?(?P<name>[^\s<{]+)(?:[\s<][^{]{0,200}?)?<\|message\|>\s*(?=\{)"
    )


class LlamaParser(JsonParser):
    """Parses `{"name": "f", "parameters": {}}` without markers that distinguish calls from other JSON.

    Only the request's functions count. The section is abandoned at the first text that is not a call of one of them.
    """

    separators = lazy_pattern(r"(?:[\s,;\[\]]|<\|python_tag\|>)*")
    _first = lazy_pattern(
        rf'\{{\s*(?:(?P<key>{_STRING})\s*:\s*(?:(?P<value>{_STRING})|""|[^\s"])|""|[^\s"])', re.DOTALL
    )
    _keys = frozenset({'"name"', '"type"', '"id"', '"function"', '"parameters"', '"arguments"'})

    def parse(self) -> Fragments:
        """Parse the calls."""
        at = 0
        while (start := (yield from self._next_call(at))) is not None:
            end = yield from self._read_object(start)
            if end is None or not self.is_last_call(start, end):
                break
            at = end
        self.is_abandoned = True

    def accepts(self, name: str) -> bool:
        """Return whether the request has this function."""
        return name in self.tools

    def _next_call(self, at: int) -> Generator[Any, None, int | None]:
        """Return the start of the next object if it starts as a call does, or None."""
        while (start := self._skip_separators(at)) is None or not self._first.match(self.text, start):
            if self.is_over or (start is not None and self.text[start] != "{"):
                return None
            yield None
        first = self._first.match(self.text, start)
        if first is None or first["key"] not in self._keys:
            return None
        named = first["key"] == '"name"'
        return start if not named or (first["value"] and self.accepts(_unquote(first["value"]))) else None

    def _skip_separators(self, at: int) -> int | None:
        """Return the position after separators, or None while more text could extend them."""
        match = self.separators.match(self.text, at)
        start = match.end() if match else at
        return None if "<|python_tag|>".startswith(self.text[start:]) else start


def _unquote(string: str) -> str:
    """Return the value of a JSON string; empty if it is invalid."""
    value = read_object(f'{{"value":{string}}}')
    return value["value"] if value else ""


class BareJsonParser(LlamaParser):
    """Parses a list of objects that describe calls, without any marker; see `LlamaParser`.

    The markers of other formats may stand around the list, as models write them now and then.
    """

    separators = lazy_pattern(r"(?:[\s,;\[\]]|```|json|TOOL_CALLS|</?tool_call>)*")
    closing = lazy_pattern(r"\s*\]?(?:\s*(?:```|</tool_call>))?")
    _words = ("```", "json", "TOOL_CALLS", "<tool_call>", "</tool_call>")

    def _skip_separators(self, at: int) -> int | None:
        match = self.separators.match(self.text, at)
        start = match.end() if match else at
        return None if any(word.startswith(self.text[start:]) for word in self._words) else start


_NAME_LINE: Final = lazy_pattern(r"\s*(?P<name>[\w.-]*)(?P<line>[ \t]*\n\s*)?")


class NamedLineParser(JsonParser):
    """Parses a name, a line break and the object of the arguments.

    Only the request's functions count. The section is abandoned at the first text that is not a call of one of them.
    """

    def parse(self) -> Fragments:
        """Parse the calls."""
        at: int | None = 0
        while at is not None and (head := (yield from self._next_head(at))) is not None:
            yield self.start_call(head["name"])
            start = head.start("name")
            at = yield from self._stream_arguments(head.end())
            if at is not None:
                yield self.finish_call(start, at)
        self.is_abandoned = True

    def _next_head(self, at: int) -> Generator[None, None, re.Match[str] | None]:
        """Return the name of a function before an object, or None if other text follows."""
        while True:
            head = _NAME_LINE.match(self.text, at)
            assert head is not None
            rest = self.text[head.end() :]
            if head["line"] and rest:
                return head if rest[0] == "{" and head["name"] in self.tools else None
            is_name = any(name.startswith(head["name"]) for name in self.tools)
            if self.is_over or not is_name or rest.strip(" \t") or (rest and head["name"] not in self.tools):
                return None
            yield None
