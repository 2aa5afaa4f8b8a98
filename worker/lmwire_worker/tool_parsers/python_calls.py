"""Calls in Python: `get_weather(city="Paris", days=3)`."""

import ast
import json
import re
import warnings
from collections.abc import Generator, Mapping, Sequence
from itertools import count
from keyword import iskeyword
from typing import Any, Final

from msgspec import Struct

from lmwire_protocol import Function, Tool
from lmwire_protocol.imports import lazy_pattern

from .base import Fragments, GeneratorParser
from .format import ToolCallParser, WrittenCall
from .objects import write_value
from .parameter_order import parameters_in_order

_NAME: Final = lazy_pattern(r"(?<![\w.-])(?P<name>[^\W\d][\w.-]{0,127})\s*\(")
_TOKEN: Final = lazy_pattern(
    r'"""(?:[^\\]|\\.)*?"""|'
    r"'''(?:[^\\]|\\.)*?'''|"
    r'"(?:[^"\\]|\\.)*"|'
    r"'(?:[^'\\]|\\.)*'|"
    r"""["'()\[\]{},]""",
    re.DOTALL,
)
_NEWLINE: Final = lazy_pattern(r"(?<!\\)\n")
_QUOTED: Final = lazy_pattern(r"\s*(?P<name>[^\W\d]\w*)\s*=\s*(?P<quote>[\"'])")
_NEXT_ARGUMENT: Final = lazy_pattern(r"\s*[^\W\d]\w*\s*=(?!=)")
_NAME_OR_END: Final = lazy_pattern(r"\s*(?:[^\W\d]\w*\s*=?)?")
_NEXT_CALL: Final = lazy_pattern(r"\s*(?:\]|(?:,\s*)?[^\W\d][\w.-]*\s*\()")
_CALL_OR_END: Final = lazy_pattern(r"\s*(?:,\s*)?(?:[^\W\d][\w.-]*\s*)?")
_ESCAPES: Final = {"\\": "\\", "'": "'", '"': '"', "n": "\n", "t": "\t", "r": "\r"}
_ESCAPE: Final = lazy_pattern(r"\\([\\'\"ntr])")
_LEADING_ZEROS: Final = lazy_pattern(r"\s*(-?)0+(\d+)\s*")
_KEYWORD: Final = lazy_pattern(r"\s*(?P<name>[^\W\d]\w*)\s*=(?!=)")
_BARE_TEXT: Final = lazy_pattern(r"""[\w/~.@#$](?:[^"'()\[\]{}\\\n]*[^"'()\[\]{}\\\s+*%&|^<>=-])?""")
"""A string without quotes that does not look like the beginning of an expression."""
_BARE_WORDS: Final = lazy_pattern(r"[^\W\d_](?:[\w .:/@#-]*\w)?")
"""A string without quotes that cannot be an expression, except for a difference, a quotient or an attribute."""


class PythonParser(GeneratorParser):
    """Parses calls alone, in a list or inside `print`. Nothing is executed.

    Arguments are literals of Python or JSON. A string may lack its quotes if the parameter can be a string.
    """

    trigger = "("
    separators = lazy_pattern(r"(?:[\s,;`\[\]()]|\bprint\b)*")

    def parse(self) -> Fragments:
        """Parse the calls."""
        at = 0
        while head := (yield from self.find(_NAME, at)):
            at = head.end()
            if head["name"] == "print" and "print" not in self.tools:
                continue
            end = yield from self._read_call(head)
            if end is None:
                return
            at = end

    def _read_call(self, head: re.Match[str]) -> Generator[Any, None, int | None]:
        """Parse a call from its head on, argument by argument.

        Returns:
            The end of the call, valid or not; None if the section ends inside it.
        """
        arguments = _ArgumentReader(self.tools.get(head["name"]))
        at = head.end()
        while True:
            end = yield from self._find_end(at, ",)")
            read = _read_argument(arguments, self.text[at : end - 1], self.text[end - 1]) if end is not None else None
            if read is None and (string := (yield from self._find_string(at, arguments))) is not None:
                end, read = string
            if end is None:
                return None
            at, closed = end, self.text[end - 1] == ")"
            if read is None:
                if self.has_open_call:
                    yield self.fail_call()
                return end if closed else (yield from self._find_end(at, ")"))
            for name, value in read.items():
                yield from self.add_argument(head["name"], name, value)
            if closed:
                yield from self.finish_arguments(head.start(), end, head["name"])
                return end

    def _find_string(
        self, start: int, arguments: "_ArgumentReader"
    ) -> Generator[Any, None, tuple[int, dict[str, Any]] | None]:
        """Wait for the end of a string with quotes that lack a backslash, as in `run(command='sed -n '1,9p' a.py')`.

        The quote that ends it is the first before the next argument, before the next call, or before the end.

        Returns:
            The end of the argument, and its name and value; None if the argument is not a string of this kind.
        """
        opening = _QUOTED.match(self.text, start)
        if opening is None or not arguments.takes_text(opening["name"]):
            return None
        closing = re.compile(rf"{opening['quote']}\s*(?P<mark>[,)])")
        at = opening.end()
        while True:
            while (close := closing.search(self.text, at)) is None and not self.is_over:
                yield from self.wait_for_any(",)")
            if close is None:
                return None
            after, undecided = (_NEXT_ARGUMENT, _NAME_OR_END) if close["mark"] == "," else (_NEXT_CALL, _CALL_OR_END)
            while not self.is_over and undecided.fullmatch(self.text, close.end()):
                yield None
            if after.match(self.text, close.end()) or (
                self.is_over and close["mark"] == ")" and not self.text[close.end() :].strip()
            ):
                text = self.text[opening.end() : close.start()]
                arguments.take(opening["name"])
                return close.end(), {opening["name"]: _ESCAPE.sub(lambda mark: _ESCAPES[mark[1]], text)}
            at = close.start() + 1

    def _find_end(self, start: int, marks: str) -> Generator[None, None, int | None]:
        """Wait for the end of the argument or call around `start`; return it, or None if the section ends before."""
        while (end := _find_mark(self.text, start, marks)) is None and not self.is_over:
            yield from self.wait_for_any(marks)
        return end


def _read_argument(arguments: "_ArgumentReader", text: str, mark: str) -> dict[str, Any] | None:
    """Return an argument's name and value, or nothing before the last bracket; None if it is invalid."""
    if not text.strip() and mark == ")":  # a comma may stand before the bracket
        return {}
    try:
        name, value = arguments.read(text)
        write_value(value)
    except Exception:  # a model's text can fail Python's parser in many ways
        return None
    return {name: value}


class _ArgumentReader:
    """Reads the arguments of one call.

    Positional arguments take the names of the parameters that have no argument yet, required ones first. The
    positional arguments of an unknown function are named `arg0`, `arg1` and so on.

    Args:
        function: The called function; None if the request does not offer it.
    """

    def __init__(self, function: Function | None) -> None:
        self._schemas = parameters_in_order(function.parameters) if function is not None else {}
        self._names = iter(self._schemas) if function is not None else (f"arg{number}" for number in count())
        self._takes_bare_text = function is not None
        """True while a positional argument may be text without quotes. After a keyword, it is the rest of a value."""
        self._seen: set[str] = set()

    def takes_text(self, name: str) -> bool:
        """Return whether a parameter of this name may be a string, and has no argument yet."""
        schema = self._schemas.get(name)
        kind = schema.get("type") if isinstance(schema, dict) else None
        return name not in self._seen and (kind is None or "string" in kind)

    def take(self, name: str) -> None:
        """Note that a parameter has its argument."""
        self._seen.add(name)

    def read(self, text: str) -> tuple[str, Any]:
        """Return an argument's name and value. Raises various exceptions if the text is not an argument."""
        keyword = _KEYWORD.match(text)
        if keyword is None:
            name = next(name for name in self._names if name not in self._seen)
            bare = _BARE_WORDS if self._takes_bare_text else None
        else:
            name, text = keyword["name"], text[keyword.end() :]
            bare = _BARE_TEXT if name in self._schemas else _BARE_WORDS
            self._takes_bare_text = False
        if name in self._seen:
            raise ValueError("the parameter has an argument already")
        value = read_value(text, self._schemas.get(name), bare=bare)
        self._seen.add(name)
        return name, value


def read_value(text: str, schema: Any, *, bare: re.Pattern[str] | None) -> Any:
    """Return the value of an argument: that of a literal, or a string if the text has no quotes.

    Args:
        text: The argument.
        schema: The parameter's schema, whatever the host sent.
        bare: The pattern of strings without quotes; None to allow none.

    Raises:
        Exception: the text is neither a literal nor such a string.
    """
    kind = schema.get("type") if isinstance(schema, dict) else None
    try:
        value = int("".join(digits.groups())) if (digits := _LEADING_ZEROS.fullmatch(text)) else _value(text)
    except Exception:
        if bare is None or not bare.fullmatch(text.strip()) or (kind is not None and "string" not in kind):
            raise
        return text.strip()
    if kind == "string" and type(value) in (int, float):
        return text.strip()
    return value


class _JsonValues(ast.NodeTransformer):
    """Replaces the names of JSON's literals by constants, and sets by lists."""

    _values: Final = {"true": True, "false": False, "null": None}

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return ast.Constant(self._values[node.id]) if node.id in self._values else node

    def visit_Set(self, node: ast.Set) -> ast.expr:
        return ast.List([self.visit(item) for item in node.elts], ast.Load())


def _value(text: str) -> Any:
    if text.rstrip().endswith("\\"):
        raise ValueError("the value goes on")  # for Python, it would continue on the next line
    with warnings.catch_warnings(action="ignore"):  # about invalid escapes in strings
        call = ast.parse(f"_({_join_lines(text)}\n)", mode="eval").body
    if not isinstance(call, ast.Call) or call.keywords:
        raise ValueError("not a value")
    (node,) = call.args
    return ast.literal_eval(_JsonValues().visit(node))


def _find_mark(text: str, start: int, marks: str) -> int | None:
    """Return the index after the first of the marks outside strings and inner brackets, or None."""
    depth = 0
    for token in _TOKEN.finditer(text, start):
        if token[0] in ('"', "'"):
            return None
        if depth == 0 and token[0] in (")", "]", "}", ","):
            if token[0] in marks:
                return token.end()
            if token[0] != ",":
                return None
        depth += {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}.get(token[0], 0)
    return None


def _join_lines(text: str) -> str:
    """Escape line breaks inside strings: Python allows them in triple-quoted strings only."""
    text = text.replace("\0", r"\x00")
    return _TOKEN.sub(
        lambda token: token[0] if token[0][:3] in ('"""', "'''") else _NEWLINE.sub(r"\\n", token[0]), text
    )


class BarePythonParser(PythonParser):
    """Parses a list of calls without any marker: `[get_weather(city="Paris")]`.

    Only the request's functions count. The section is abandoned at text that does not start with a call of one of them.
    """

    _start: Final = lazy_pattern(r"\s{0,64}\[\s{0,64}(?P<name>[\w.-]{1,128})\s{0,64}\(")
    _undecided: Final = lazy_pattern(r"\s{0,64}(?:\[\s{0,64}(?:[\w.-]{1,128}\s{0,64})?)?")

    def parse(self) -> Fragments:
        """Parse the calls."""
        while not self.is_over and self._undecided.fullmatch(self.text):
            yield None
        start = self._start.match(self.text)
        if start is not None and start["name"] in self.tools:
            yield from super().parse()
        else:
            self.is_abandoned = True


class PythonCall(Struct, frozen=True):
    """A call of a Python function, with keyword arguments that are literals."""

    parser: type[PythonParser] = PythonParser
    required_first: bool = False
    """Required parameters come first, as in the signature that the prompt shows."""
    capitalized: bool = True
    """Literals are those of Python: `True` and `None`. Otherwise, they are those of JSON."""

    def make_parser(self, tools: Sequence[Tool]) -> ToolCallParser:
        """Return a parser of one section; see `CallShape`."""
        return self.parser(tools)

    def write(self, call: WrittenCall, index: int) -> str:
        """Return the text of a call; see `CallShape`."""
        return call_text(call.name, call.arguments)


def call_text(name: str, arguments: Mapping[str, Any]) -> str:
    """Return a call in Python, with keyword arguments.

    Args:
        name: The function's name.
        arguments: The arguments by name.
    """
    if all(key.isidentifier() and not iskeyword(key) for key in arguments):
        return f"{name}({', '.join(f'{key}={literal(value)}' for key, value in arguments.items())})"
    return f"{name}(**{literal(dict(arguments))})"


def literal(value: Any) -> str:
    """Return a JSON value as a Python literal."""
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, list):
        return f"[{', '.join(map(literal, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{literal(key)}: {literal(item)}' for key, item in value.items())}}}"
    return repr(value)
