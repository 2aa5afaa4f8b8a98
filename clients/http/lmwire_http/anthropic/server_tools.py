"""Blocks of tools that ran on Anthropic's servers, in conversations that began there. The model reads their text."""

import json
from collections.abc import Iterator
from typing import Any, Final, cast

_TEXTS: Final = ("title", "url", "text", "stdout", "stderr", "error_code", "tool_name")
"""Members of a result that are text for the model. The rest is encrypted, or of no use to it."""
_NESTED: Final = ("content", "source", "tool_references")
_MAX_DEPTH: Final = 8


def call_text(name: str, arguments: object) -> str:
    """Return a call as text.

    Args:
        name: The tool.
        arguments: Its input.
    """
    return f"\n[{name}: {json.dumps(arguments, ensure_ascii=False)}]\n"


def result_text(content: object) -> str:
    """Return the text of a result, a line for each of its parts."""
    return "".join(f"\n{line}" for line in _lines(content, _MAX_DEPTH)) + "\n"


def _lines(content: object, depth: int) -> Iterator[str]:
    if not depth:
        return
    if isinstance(content, str):
        yield content
    elif isinstance(content, list):
        for item in cast(list[Any], content):
            yield from _lines(item, depth - 1)
    elif isinstance(content, dict):
        part = cast(dict[str, Any], content)
        yield from (part[name] for name in _TEXTS if part.get(name) and isinstance(part[name], str))
        if part.get("media_type") == "text/plain" and isinstance(part.get("data"), str):
            yield part["data"]
        for name in _NESTED:
            yield from _lines(part.get(name), depth - 1)
