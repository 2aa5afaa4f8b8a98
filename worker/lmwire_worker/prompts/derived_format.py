"""Derive a format of tool calls from what a chat template writes, and keep it only if it reads that back."""

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from lmwire_protocol import Function, RequestError, Tool

from ..output_parsing import CONTENT, OutputParser, Syntax, TextFragment, find_states
from ..tool_parsers import ToolFormat, WrittenCall, derive_formats
from .chat_template import ChatTemplate
from .template_traits import SAMPLE_PARAMETERS, render_samples

Sample = tuple[Sequence[WrittenCall], str]
"""Calls, and their text alone."""


def derive_tool_format(template: ChatTemplate) -> ToolFormat | None:
    """Return a format derived from the calls that a template writes, which reads them back; None if there is none.

    Args:
        template: The template.
    """
    try:
        samples = [
            ([WrittenCall(call.name, call.arguments, call.id) for call in calls], text)
            for calls, text in render_samples(template)
        ]
    except RequestError:
        return None
    return next(derive_from_samples(samples), None)


def derive_from_samples(samples: Sequence[Sample]) -> Iterator[ToolFormat]:
    """Yield formats derived from samples, which read all of them back.

    Args:
        samples: The samples. The first has one call or two, the first of them with two arguments.
    """
    for candidate in derive_formats(*samples[0]) if samples else ():
        if _written(candidate, *samples[0]) and all(_reads_sample(candidate, *sample) for sample in samples):
            yield candidate


def _written(tool_format: ToolFormat, calls: Sequence[WrittenCall], text: str) -> bool:
    """Return whether a format writes calls as a template does."""
    return tool_format.write(calls).strip() == text


def _reads_sample(tool_format: ToolFormat, calls: Sequence[WrittenCall], text: str) -> bool:
    """Return whether a format reads exactly these calls of a text, whole and in single characters."""
    tools = [Tool(function=Function(name=call.name, parameters=SAMPLE_PARAMETERS)) for call in calls]
    syntax = Syntax(find_states(None, (), tool_format), CONTENT, None, None, tool_format)
    expected = [(call.name, call.arguments) for call in calls]
    return all(_read_calls(syntax, tools, pieces) == expected for pieces in ([text], text))


def _read_calls(syntax: Syntax, tools: Sequence[Tool], pieces: Iterable[str]) -> list[tuple[str, Any]] | None:
    """Return the calls of an answer that comes in pieces; None if it has other text."""
    parser = OutputParser(syntax, syntax.initial, tools, True)
    names: dict[int, str] = {}
    arguments: dict[int, str] = {}
    fragments = [fragment for piece in pieces for fragment in parser.push(piece)] + parser.end(True)
    for fragment in fragments:
        if isinstance(fragment, TextFragment):
            if fragment.text.strip():
                return None
            continue
        if fragment.complete is False:
            return None
        names.setdefault(fragment.index, fragment.name or "")
        arguments[fragment.index] = arguments.get(fragment.index, "") + fragment.arguments
    return [(name, json.loads(arguments[index])) for index, name in names.items()]
