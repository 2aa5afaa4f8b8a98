"""The parser for calls in Python: `get_weather(city="Paris", days=3)`."""

import ast
import re
import warnings
from collections.abc import Generator
from typing import Any, Final

from .base import Fragments, GeneratorParser

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


class PythonParser(GeneratorParser):
    """Parses calls alone, in a list or inside `print`. Their arguments are literals of Python or JSON."""

    trigger = "("
    separators = re.compile(r"(?:[\s,;`\[\]()]|\bprint\b)*")

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
        names = _ArgumentReader(self._parameters(head["name"]))
        at = head.end()
        while end := (yield from self._find_end(at, ",)")):
            text, at = self.text[at : end - 1], end
            closed = self.text[end - 1] == ")"
            try:
                if text.strip() or not closed:  # a comma may stand before the bracket
                    yield from self.add_argument(head["name"], *names.read(text))
            except Exception:  # a model's text can fail Python's parser in many ways
                if self.has_open_call:
                    yield self.fail_call()
                return end if closed else (yield from self._find_end(at, ")"))
            if closed:
                yield from self.finish_arguments(head.start(), end, head["name"])
                return end
        return None

    def _find_end(self, start: int, marks: str) -> Generator[None, None, int | None]:
        """Wait for the end of the argument or call around `start`; return it, or None if the section ends before."""
        while (end := _find_mark(self.text, start, marks)) is None and not self.is_over:
            yield from self.wait_for_any(marks)
        return end

    def _parameters(self, name: str) -> list[str]:
        return list(self.tools[name].parameters.get("properties", {})) if name in self.tools else []


class _ArgumentReader:
    """Reads the arguments of one call. Positional arguments take the names of the parameters, in order."""

    def __init__(self, parameters: list[str]) -> None:
        self._parameters = iter(parameters)
        self._seen: set[str] = set()
        self._named = False
        """True after a keyword argument: no positional argument may follow."""

    def read(self, text: str) -> tuple[str, Any]:
        """Return an argument's name and value. Raises various exceptions if the text is not an argument."""
        call = _parse(f"_({_join_lines(text)}\n)")
        (node,) = call.keywords or call.args
        self._named = self._named or bool(call.keywords)
        name = node.arg if isinstance(node, ast.keyword) else None if self._named else next(self._parameters)
        if name is None or name in self._seen or (call.args and call.keywords):
            raise ValueError("not an argument, or not another one")
        self._seen.add(name)
        return name, _value(node.value if isinstance(node, ast.keyword) else node)


class _JsonNames(ast.NodeTransformer):
    """Replaces the names of JSON's literals by constants."""

    _values: Final = {"true": True, "false": False, "null": None}

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return ast.Constant(self._values[node.id]) if node.id in self._values else node


def _parse(text: str) -> ast.Call:
    with warnings.catch_warnings(action="ignore"):  # about invalid escapes in strings
        expression = ast.parse(text, mode="eval").body
    if not isinstance(expression, ast.Call):
        raise ValueError("not a call")
    return expression


def _value(node: ast.expr) -> Any:
    return ast.literal_eval(_JsonNames().visit(node))


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
    return _TOKEN.sub(
        lambda token: token[0] if token[0][:3] in ('"""', "'''") else _NEWLINE.sub(r"\\n", token[0]), text
    )
