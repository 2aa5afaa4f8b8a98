"""Calls written in Python: `get_weather(city="Paris", days=3)`."""

import ast
import re
import warnings
from collections.abc import Generator
from typing import Any, Final

from .reader import Pieces, Reader

_NAME: Final = re.compile(r"(?<![\w.-])(?P<name>[^\W\d][\w.-]{0,127})\s*\(")
_TOKEN: Final = re.compile(
    r'"""(?:[^\\]|\\.)*?"""|'
    r"'''(?:[^\\]|\\.)*?'''|"
    r'"(?:[^"\\]|\\.)*"|'
    r"'(?:[^'\\]|\\.)*'|"
    r"""["'()\[\]{}]""",
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
            end = yield from self._find_end(at)
            if end is None:
                return
            arguments = self._read_arguments(head["name"], self.text[at : end - 1])
            if arguments is not None:
                yield from self.give_whole(head.start(), end, head["name"], arguments)
            at = end

    def _find_end(self, start: int) -> Generator[None, None, int | None]:
        """Waits for the end of a call whose arguments begin at `start`; None when the section is over before it."""
        while (end := _closing_bracket(self.text, start)) is None and not self.over:
            yield from self.await_mark(")")
        return end

    def _read_arguments(self, name: str, text: str) -> dict[str, Any] | None:
        """The arguments by name. Those without one get the names of the function's parameters, in order."""
        try:
            call = _parse(f"_({_join_lines(text)}\n)")
            names = self._parameters(name)[: len(call.args)] + [keyword.arg for keyword in call.keywords]
            nodes = [*call.args, *(keyword.value for keyword in call.keywords)]
            arguments = {str(key): _value(node) for key, node in zip(names, nodes, strict=True)}
            return None if None in names or len(arguments) < len(nodes) else arguments
        except Exception:  # a model's text can fail Python's parser in many ways
            return None

    def _parameters(self, name: str) -> list[str]:
        return list(self.tools[name].parameters.get("properties", {})) if name in self.tools else []


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


def _closing_bracket(text: str, start: int) -> int | None:
    """The index after the bracket that closes the one before `start`, strings left aside; None if there is none."""
    depth = 1
    for token in _TOKEN.finditer(text, start):
        if token[0] in ('"', "'"):
            return None
        depth += {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}.get(token[0], 0)
        if depth == 0:
            return token.end()
    return None


def _join_lines(text: str) -> str:
    """Strings that go over several lines, which Python allows between three quotes only, as one line each."""
    return _TOKEN.sub(
        lambda token: token[0] if token[0][:3] in ('"""', "'''") else _NEWLINE.sub(r"\\n", token[0]), text
    )
