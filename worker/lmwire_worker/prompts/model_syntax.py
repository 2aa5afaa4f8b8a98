"""Find how a model writes its answers: by rendering a call with its chat template, and reading it back."""

import json
import re
from typing import Any, Final

from lmwire_protocol import Function, RequestError, Tool

from ..models.tokenizer import Tokenizer
from ..output_parsing import Syntax
from ..tool_parsers import FORMATS, ToolFormat, WrittenCall
from .chat_template import ChatTemplate, select_template
from .template_probe import (
    CALL_IDS,
    FUNCTION,
    PARAMETERS,
    REASONING,
    VALUE,
    render_call,
    render_opening,
    render_reasoning,
)

_PROBE: Final = Tool(function=Function(name=FUNCTION, parameters=PARAMETERS))
_ARGUMENTS: Final[dict[str, Any]] = {"word": VALUE}
_OPENING_TAG: Final = re.compile(r"(?P<tag>[<\[](?P<name>[\w:.-]{1,64})[>\]])\s*\Z")
_CLOSING_TAG: Final = re.compile(r"\s*(?P<tag>[<\[]/(?P<name>[\w:.-]{1,64})[>\]])")
_SIGNS: Final = {
    "<|tool_list_start|>": "pythonic",
    "<|tool_calls_section_begin|>": "kimi_k2",
    "<|python_tag|>": "llama3_json",
    '{"name": function name, "parameters":': "llama3_json",
}
"""Texts in chat templates that identify a format, if the template does not write a call that could be read back."""
_LAST_SIGNS: Final = {
    "<minimax:tool_call>": "minimax_m2",
    "<start_function_call>": "function_gemma",
    "<longcat_tool_call>": "longcat",
    "<arg_key>": "glm47",
    "<|tool_call_start|>": "pythonic",
    "<tool_call>\n<function=": "qwen3_coder",
    "<tool_call>\\n<function=": "qwen3_coder",
    "[TOOL_CALLS]": "mistral",
}
"""The same for templates that show a part of a format alone, as mlx-lm knows them. A tokenizer's settings go first."""


def find_syntax(
    tokenizer: Tokenizer,
    model_type: str,
    reasoning_markers: tuple[str, str] | None = None,
    tool_format: str | None = None,
) -> Syntax:
    """Return a model's syntax with the format of its tool calls; see `Syntax.of`.

    Args:
        tokenizer: The model's tokenizer.
        model_type: The `model_type` of the model's configuration.
        reasoning_markers: The markers around reasoning; None to find them.
        tool_format: Name of the format of tool calls; None to find it.

    Raises:
        RequestError: invalid_request: no format has the name; unsupported.
    """
    known = _known_tool_format(tokenizer, model_type) if tool_format is None else named_tool_format(tool_format)
    found = known or _generic_tool_format(model_type)
    assumed = known is None
    syntax = Syntax.of(tokenizer, model_type, found, reasoning_markers, assumes_tools=assumed)
    if not syntax.has_reasoning and (markers := _rendered_markers(tokenizer)) is not None:
        syntax = Syntax.of(tokenizer, model_type, found, markers, assumes_tools=assumed)
    return syntax


def named_tool_format(name: str) -> ToolFormat:
    """Return the format of this name.

    Raises:
        RequestError: invalid_request: no format has the name.
    """
    if name not in FORMATS:
        problem = f"tool_format: no format is called {name!r}; give one of {', '.join(sorted(FORMATS))}"
        raise RequestError("invalid_request", problem, field="tool_format")
    return FORMATS[name]


def find_tool_format(tokenizer: Tokenizer, model_type: str) -> ToolFormat:
    """Return the format of a model's tool calls.

    It is the one that reads back the calls that the chat template writes. If the template writes none, signs in the
    template, the tokenizer's settings and the vocabulary decide. The last resort is a format that the prompt can
    describe: Python for Gemma, and JSON for other models.

    Args:
        tokenizer: The model's tokenizer.
        model_type: The `model_type` of the model's configuration.
    """
    return _known_tool_format(tokenizer, model_type) or _generic_tool_format(model_type)


def _generic_tool_format(model_type: str) -> ToolFormat:
    """Return the format that the prompt describes to a model which shows none."""
    return FORMATS["gemma3_code" if model_type.startswith("gemma") else "json_tools"]


def _known_tool_format(tokenizer: Tokenizer, model_type: str) -> ToolFormat | None:
    """Return the format that a model's files show, or None; see `find_tool_format`."""
    if model_type == "gpt_oss":
        return FORMATS["harmony"]
    if (template := _template_of(tokenizer)) is not None:
        if (found := _read_back(template)) is not None:
            return found
        for sign, name in _SIGNS.items():
            if sign in template.source:
                return FORMATS[name]
        if (found := _format_in_source(template.source)) is not None:
            return found
    if (name := tokenizer.tool_parser_type or "") in FORMATS:
        return FORMATS[name]
    for sign, name in _LAST_SIGNS.items():
        if template is not None and sign in template.source:
            return FORMATS[name]
    vocabulary = tokenizer.vocabulary
    for tool_format in FORMATS.values():
        markers = {tool_format.start, tool_format.end}
        if tool_format.end and markers <= vocabulary and tool_format.start != FORMATS["json_tools"].start:
            return tool_format  # several formats share the markers of JSON
    return None


def _template_of(tokenizer: Tokenizer) -> ChatTemplate | None:
    try:
        template = select_template(tokenizer, None, tools=True)
    except RequestError:
        return None
    return template if tokenizer.has_chat_template else None


def _rendered_markers(tokenizer: Tokenizer) -> tuple[str, str] | None:
    """Return the tags around past reasoning, or around that which the template opens; None if it writes none."""
    template = _template_of(tokenizer)
    if template is None:
        return None
    try:
        before, _, after = render_reasoning(template).partition(REASONING)
        opening = render_opening(template)
    except RequestError:
        return None
    opened = _OPENING_TAG.search(opening)
    if opened is not None and re.search("think|thought|reason", opened["name"]):
        tag = opened["tag"]
        return tag, f"{tag[0]}/{tag[1:]}"
    start, end = _OPENING_TAG.search(before), _CLOSING_TAG.match(after)
    if start is None or end is None or start["name"] != end["name"]:
        return None
    return start["tag"], end["tag"]


def _read_back(template: ChatTemplate) -> ToolFormat | None:
    """Return the format that reads exactly the call that a template writes, or None if there is none."""
    try:
        text = render_call(template)
    except RequestError:  # a limit: the template's requests report it
        return None
    if FUNCTION not in text or VALUE not in text:
        return None
    readers = [tool_format for tool_format in FORMATS.values() if _reads(tool_format, text)]
    return max(readers, key=lambda reader: _likeness(reader, text), default=None)


def _likeness(tool_format: ToolFormat, text: str) -> int:
    """Return how well the text of a format agrees with a template's: 2 exactly, 1 but for white space, 0 otherwise."""
    written = [tool_format.write([WrittenCall(FUNCTION, _ARGUMENTS, call_id)]) for call_id in CALL_IDS]
    words = "".join(text.split())
    return max((call in text) + ("".join(call.split()) in words) for call in written)


def _reads(tool_format: ToolFormat, text: str) -> bool:
    start = tool_format.start
    if start and start in text:
        text = text.partition(start)[2]
    elif tool_format.bare:
        text = text[min((at for mark in "{[" if (at := text.find(mark)) >= 0), default=len(text)) :]
    else:
        return False
    if tool_format.end:
        text, closed, _ = text.partition(tool_format.end)
        if not closed:
            return False
    parser = tool_format.make_parser([_PROBE])
    fragments = parser.push(text)
    fragments += parser.end()[0]
    names = [fragment.name for fragment in fragments if fragment.name is not None]
    complete = [fragment.complete for fragment in fragments if fragment.complete is not None]
    if (names, complete) != ([FUNCTION], [True]):
        return False
    return json.loads("".join(fragment.arguments for fragment in fragments)) == _ARGUMENTS


def _format_in_source(source: str) -> ToolFormat | None:
    """Return the format of which a template's source has the most texts, or None."""
    best, most = None, 0
    for tool_format in FORMATS.values():
        marks = [mark for mark in (tool_format.start, tool_format.end) if mark]
        if not marks or not all(mark in source for mark in marks):
            continue
        pieces = tool_format.write([WrittenCall("\0", {"\0": "\0"})]).split("\0")
        count = len(marks) + sum(len(piece.strip()) > 1 and piece.strip() in source for piece in pieces)
        if count > most:
            best, most = tool_format, count
    return best
