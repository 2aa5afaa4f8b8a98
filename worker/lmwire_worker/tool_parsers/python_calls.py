"""Calls written in Python: `get_weather(city="Paris", days=3)`."""

import ast
import re
import warnings
from collections.abc import Generator
from typing import Any, Final

from .base import Pieces, Reader

_NAME: Final = re.compile(r"(?<![\w.-])(?P<name>[^\W\d][\w.-]{0,127})\s*\(")
_TOKEN: Final = re.compile(
    r'"""(?:[^\\]|\\.)*?"""|'
    r"'''(?:[^\\]|\\.)*?'''|"
    r'"(?:[^"\\]|\\.)*"|'
    r"'(?:[^'\\]|\\.)*'|"
    r"""["'()\[\]{},]""",
    re.DOTALL,
)
_NEWLINE: Final = re.compile(r"(?<!\\)\n")


class PythonCalls(Reader):
    """Reads calls, alone, in a list or inside `print`. Their arguments are literals, Python's or JSON's."""

    mark = "("
    separators = re.compile(r"(?:[\s,;`\[\]()]|\bprint\b)*")

    def read(self) -> Pieces:
        """Reads call after call."""
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
        """Reads a call from its head on, and gives each argument when it is whole.

        Returns where the call ends, whether it is one or not; None when the section is over before that.
        """
        names = _Names(self._parameters(head["name"]))
        at = head.end()
        while end := (yield from self._find_end(at, ",)")):
            text, at = self.text[at : end - 1], end
            closed = self.text[end - 1] == ")"
            try:
                if text.strip() or not closed:  # a comma may stand before the bracket
                    yield from self.give_argument(head["name"], *names.read(text))
            except Exception:  # a model's text can fail Python's parser in many ways
                if self.begun:
                    yield self.fail()
                return end if closed else (yield from self._find_end(at, ")"))
            if closed:
                yield from self.give_end(head.start(), end, head["name"])
                return end
        return None

    def _find_end(self, start: int, marks: str) -> Generator[None, None, int | None]:
        """Waits for what ends an argument, or a call, inside which `start` is; None when the section is over before."""
        while (end := _find_mark(self.text, start, marks)) is None and not self.over:
            yield from self.await_mark(marks)
        return end

    def _parameters(self, name: str) -> list[str]:
        return list(self.tools[name].parameters.get("properties", {})) if name in self.tools else []


class _Names:
    """Reads the arguments of one call. Those without a name get those of the function's parameters, in order."""

    def __init__(self, parameters: list[str]) -> None:
        self._parameters = iter(parameters)
        self._seen: set[str] = set()
        self._named = False
        """Whether an argument had a name: none behind it may lack one."""

    def read(self, text: str) -> tuple[str, Any]:
        """An argument's name and value. Raises whatever comes of a text that is none."""
        call = _parse(f"_({_join_lines(text)}\n)")
        (node,) = call.keywords or call.args
        self._named = self._named or bool(call.keywords)
        name = node.arg if isinstance(node, ast.keyword) else None if self._named else next(self._parameters)
        if name is None or name in self._seen or (call.args and call.keywords):
            raise ValueError("not an argument, or not another one")
        self._seen.add(name)
        return name, _value(node.value if isinstance(node, ast.keyword) else node)


class _JsonNames(ast.NodeTransformer):
    """Reads JSON's literals where Python has others."""

    _values: Final = {"true": True, "false": False, "null": None}

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return ast.Constant(self._values[node.id]) if node.id in self._values else node


def _parse(text: str) -> ast.Call:
    with warnings.catch_warnings(action="ignore"):  # of odd escapes in strings
        expression = ast.parse(text, mode="eval").body
    if not isinstance(expression, ast.Call):
        raise ValueError("not a call")
    return expression


def _value(node: ast.expr) -> Any:
    return ast.literal_eval(_JsonNames().visit(node))


def _find_mark(text: str, start: int, marks: str) -> int | None:
    """The index after one of the marks, strings and what is in further brackets left aside; None if there is none."""
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
    """Strings that go over several lines, which Python allows between three quotes only, as one line each."""
    return _TOKEN.sub(
        lambda token: token[0] if token[0][:3] in ('"""', "'''") else _NEWLINE.sub(r"\\n", token[0]), text
    )
