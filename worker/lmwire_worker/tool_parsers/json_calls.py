"""Calls whose arguments the model writes as JSON, which are given on as they come."""

import re
from collections.abc import Generator
from typing import Any, ClassVar, Final, NamedTuple

from .base import Pieces, Reader
from .objects import ObjectEnd, read_object

_STRING: Final = r'"(?:[^"\\]|\\.)+"'
_OPENING: Final = re.compile(
    rf'\{{\s*(?:"type"\s*:\s*{_STRING}\s*,\s*|"id"\s*:\s*(?P<id>{_STRING})\s*,\s*)*'
    rf'"name"\s*:\s*(?P<name>{_STRING})\s*,\s*"(?:arguments|parameters)"\s*:\s*(?=\{{)',
    re.DOTALL,
)
"""A call's object up to its arguments, where they come last. In any other order the call is given when it is whole."""


class Described(NamedTuple):
    """What an object says of a call."""

    name: str
    arguments: dict[str, Any]
    call_id: str | None = None


def read_call(text: str) -> Described | None:
    """The call that an object describes; None when it describes none.

    Knows `{"name", "arguments"}`, `parameters` for the latter, both inside `function` as OpenAI nests them, the name
    alone in `function`, and arguments that are JSON text or that are left out.
    """
    call = read_object(text)
    if call is None:
        return None
    function = call.get("function", call)
    name, holder = (function.get("name"), function) if isinstance(function, dict) else (function, call)
    arguments = holder.get("arguments", holder.get("parameters"))
    if isinstance(arguments, str):
        arguments = read_object(arguments)
    elif arguments is None:
        arguments = {}
    call_id = call.get("id")
    if not isinstance(name, str) or not name or not isinstance(arguments, dict):
        return None
    return Described(name, arguments, call_id if isinstance(call_id, str) and call_id else None)


class _Opening(NamedTuple):
    """The beginning of a call whose arguments can be given as they come."""

    name: str
    call_id: str | None
    end: int

    @classmethod
    def find(cls, text: str, start: int) -> "_Opening | None":
        match = _OPENING.match(text, start)
        call = match and read_call(match[0] + "{}}")
        return cls(call.name, call.call_id, match.end()) if match and call else None


class JsonCalls(Reader):
    """Reads objects that describe a call, alone or in a list: `{"name": "f", "arguments": {}}`.

    Subclasses add calls whose name stands before the object, which then is the arguments.
    """

    mark = "{"
    head: ClassVar[re.Pattern[str]] = re.compile(r"\{")
    """Where a call begins: at an object that describes it, or with its `name` (and `id`) before its arguments."""

    def accepts(self, name: str) -> bool:
        """Whether a call of this function is one."""
        return True

    def read(self) -> Pieces:
        """Reads call after call."""
        at: int | None = 0
        while at is not None and (head := (yield from self.find(self.head, at))):
            groups = head.groupdict()
            if groups.get("name"):
                yield self.begin(groups["name"], groups.get("id"))
                at = yield from self._pass_on(head.end())
                if at is not None:
                    yield self.finish(head.start(), at)
            else:
                at = yield from self._read_object(head.start())

    def _read_object(self, start: int) -> Generator[Any, None, int | None]:
        """Reads an object that describes a call. Returns its end; None when the section is over before it."""
        whole = ObjectEnd(start)
        while (opening := _Opening.find(self.text, start)) is None and whole.find(self.text) is None:
            if self.over:
                return None
            yield None
        if opening and self.accepts(opening.name):
            yield self.begin(opening.name, opening.call_id)
            yield from self._pass_on(opening.end)
        while (end := whole.find(self.text)) is None:
            if self.over:
                return None
            yield None
        call = read_call(self.text[start:end])
        if opening and self.begun:
            agrees = call is not None and (call.name, call.arguments) == (opening.name, self.given())
            yield self.finish(start, end) if agrees else self.fail()
        elif call and self.accepts(call.name):
            yield from self.give_whole(start, end, *call)
        return end

    def _pass_on(self, start: int) -> Generator[Any, None, int | None]:
        """Gives an object on while it comes. Returns its end; None when the section is over before it."""
        arguments, given = ObjectEnd(start), start
        while (end := arguments.find(self.text)) is None:
            if given < len(self.text):
                yield self.give(self.text[given:])
                given = len(self.text)
            if self.over:
                return None
            yield None
        yield self.give(self.text[given:end])
        return end


class MistralCalls(JsonCalls):
    """Reads `f[ARGS]{}`, with a `[CALL_ID]` before the arguments or without, and lists of objects."""

    head = re.compile(r"\{|(?<![\w.-])(?P<name>[\w.-]{1,128})\s*(?:\[CALL_ID\]\s*(?P<id>\w+)\s*)?\[ARGS\]\s*(?=\{)")
    separators = re.compile(r"(?:[\s,;\[\]]|\[TOOL_CALLS\])*")


class KimiCalls(JsonCalls):
    """Reads `<|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{}<|tool_call_end|>`."""

    head = re.compile(
        r"(?:<\|tool_call_begin\|>\s*)?(?<![^\s>])(?P<id>(?:functions\.)?(?P<name>[^\s<>:]{1,128}):\d+)\s*"
        r"<\|tool_call_argument_begin\|>\s*(?=\{)"
    )
    separators = re.compile(r"(?:\s|<\|tool_call_end\|>)*")


class HarmonyCalls(JsonCalls):
    """Reads one message to a tool: `functions.f <|constrain|>json<|message|>{}`, with its header before it or not."""

    head = re.compile(
        r"\A(?:[^{]{0,200}?\bto=|\s*)(?:functions\.)?(?P<name>[^\s<{]+)(?:[\s<][^{]{0,200}?)?<\|message\|>\s*(?=\{)"
    )


class LlamaCalls(JsonCalls):
    """Reads `{"name": "f", "parameters": {}}` where no marker tells a call from other JSON.

    So only the request's functions count, and the section is lost with the first thing that is no call of theirs.
    """

    separators = re.compile(r"(?:[\s,;\[\]]|<\|python_tag\|>)*")
    _first = re.compile(rf'\{{\s*(?:(?P<key>{_STRING})\s*:\s*(?:(?P<value>{_STRING})|""|[^\s"])|""|[^\s"])', re.DOTALL)
    _keys = frozenset({'"name"', '"type"', '"id"', '"function"', '"parameters"', '"arguments"'})

    def read(self) -> Pieces:
        """Reads call after call."""
        at = 0
        while (start := (yield from self._next_call(at))) is not None:
            end = yield from self._read_object(start)
            if end is None or not self.has_read(start, end):
                break
            at = end
        self.lost = True

    def accepts(self, name: str) -> bool:
        """Whether the request has such a function."""
        return name in self.tools

    def _next_call(self, at: int) -> Generator[Any, None, int | None]:
        """Where the next object begins, if it begins as a call does."""
        while (start := self._skip_separators(at)) is None or not self._first.match(self.text, start):
            if self.over or (start is not None and self.text[start] != "{"):
                return None
            yield None
        first = self._first.match(self.text, start)
        if first is None or first["key"] not in self._keys:
            return None
        named = first["key"] == '"name"'
        return start if not named or (first["value"] and self.accepts(_unquote(first["value"]))) else None

    def _skip_separators(self, at: int) -> int | None:
        """Where the next thing begins; None as long as it can still be a separator."""
        match = self.separators.match(self.text, at)
        start = match.end() if match else at
        return None if "<|python_tag|>".startswith(self.text[start:]) else start


def _unquote(string: str) -> str:
    """What a JSON string says; nothing if it is none."""
    value = read_object(f'{{"value":{string}}}')
    return value["value"] if value else ""
