"""The parser for Gemma's `tool_code` blocks: calls in Python, or command lines such as `run ls -la /tmp`."""

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from lmwire_protocol import Function
from lmwire_protocol.imports import lazy_pattern

from .base import Fragments
from .parameter_order import parameters_in_order
from .python_calls import PythonParser, read_value

_NAME: Final = r"(?P<name>[^\W\d][\w.-]{0,127})(?![\w.-])"
_COMMAND_START: Final = lazy_pattern(rf"\s{{0,64}}{_NAME}[ \t]{{0,16}}(?![ \t(])")
_COMMAND: Final = lazy_pattern(rf"{_NAME}(?:[ \t]+(?P<argument>[^(=].*))?")
_UNDECIDED: Final = lazy_pattern(r"\s{0,64}(?:[^\W\d][\w.-]{0,127}[ \t]{0,16})?")
"""Text that can become a command line or a call in Python."""
_ANY_TEXT: Final = lazy_pattern(".+")


class ToolCodeParser(PythonParser):
    """Parses calls in Python, and blocks of command lines.

    A command line is the name of an offered tool and the text of its first argument. A block counts as command lines
    only if it is complete and each of its lines is one.
    """

    def parse(self) -> Fragments:
        """Parse the calls."""
        while not self.is_over and _UNDECIDED.fullmatch(self.text):
            yield None
        start = _COMMAND_START.match(self.text)
        if start is None or start["name"] not in self.tools:
            yield from super().parse()
            return
        while not self.is_over:
            yield None
        try:
            commands = list(self._read_commands()) if self.is_closed else []
        except Exception:  # a model's text can fail Python's parser in many ways
            return
        for command in commands:
            yield from self.add_whole_call(*command)

    def _read_commands(self) -> Iterator["_Command"]:
        """Yield the command of each line. Raises various exceptions if a line is not a command."""
        at = 0
        for line in self.text.splitlines(keepends=True):
            start, at = at, at + len(line)
            if not line.strip():
                continue
            command = _COMMAND.fullmatch(line.strip())
            if command is None:
                raise ValueError("not a command line")
            name, argument = command["name"], command["argument"]
            yield _Command(start, at, name, self._name_argument(self.tools[name], argument))

    def _name_argument(self, function: Function, text: str | None) -> dict[str, Any]:
        if text is None:
            return {}
        parameter, schema = next(iter(parameters_in_order(function.parameters).items()))
        return {parameter: read_value(text, schema, bare=_ANY_TEXT)}


class _Command(NamedTuple):
    """The call of a command line, with its start and end in the block."""

    start: int
    end: int
    name: str
    arguments: dict[str, Any]
