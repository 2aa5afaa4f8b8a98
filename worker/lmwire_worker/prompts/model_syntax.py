"""Find how a model writes its answers: by rendering a call with its chat template, and reading it back."""

import json
import re
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from lmwire_protocol import Function, RequestError, Tool
from lmwire_protocol.imports import lazy_pattern

from ..models.tokenizer import Tokenizer
from ..output_parsing import FAMILIES, Syntax
from ..tool_parsers import DERIVED, FORMATS, ToolFormat, WrittenCall
from .chat_template import ChatTemplate, select_template
from .derived_format import Sample, derive_from_samples, derive_tool_format
from .response_template import ResponseTemplate, read_response_template
from .template_traits import (
    ANSWER,
    CALL_IDS,
    FUNCTION,
    LATER,
    PARAMETERS,
    REASONING,
    RESULT,
    VALUE,
    render_call,
    render_opening,
    render_reasoning,
    render_two_calls,
    without_opening,
)

_PROBE: Final = Tool(function=Function(name=FUNCTION, parameters=PARAMETERS))
_ARGUMENTS: Final[dict[str, Any]] = {"word": VALUE}
_PROBED_CALLS: Final = (WrittenCall(FUNCTION, _ARGUMENTS, CALL_IDS[0]),)
_PAIR: Final = (
    WrittenCall(FUNCTION, {"qvfirst": VALUE, "qvsecond": ANSWER}, CALL_IDS[0]),
    WrittenCall(f"{LATER}function", {"qvfirst": RESULT}, CALL_IDS[1]),
)
_SAMPLES: Final = (_PAIR, _PAIR[:1], _PAIR[1:])
RESPONSE_TEMPLATE: Final = "response_template"
"""Name of a format that is derived from the description of answers in the tokenizer's settings."""
_OPENING_TAG: Final = lazy_pattern(r"(?P<tag>[<\[](?P<name>[\w:.-]{1,64})[>\]])\s*\Z")
_CLOSING_TAG: Final = lazy_pattern(r"\s*(?P<tag>[<\[]/(?P<name>[\w:.-]{1,64})[>\]])")
_AROUND_CALLS: Final = lazy_pattern(r"[\s\[\],]{0,64}")
_SIGNS: Final = {
    "<|tool_list_start|>": "pythonic",
    "# 可用工具": "glm4",
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
    described = read_response_template(tokenizer.response_template)
    if tool_format is not None:
        known = named_tool_format(tool_format)
    else:
        known = (described and _described_tool_format(described, tokenizer)) or _known_tool_format(
            tokenizer, model_type
        )
    found = known or _generic_tool_format(model_type)
    assumed = known is None
    if described and reasoning_markers is None and found.name not in FAMILIES:
        reasoning_markers = described.reasoning
    syntax = Syntax.of(tokenizer, model_type, found, reasoning_markers, assumes_tools=assumed)
    if described and tool_format is None:
        syntax = replace(syntax, unread=_unread(described, found))
    if not syntax.has_reasoning and (markers := _rendered_markers(tokenizer)) is not None:
        syntax = Syntax.of(tokenizer, model_type, found, markers, assumes_tools=assumed)
    return syntax


def _unread(described: ResponseTemplate, found: ToolFormat) -> tuple[str, ...]:
    """Return the parts of a response template that are not read, such as calls that another format than found reads."""
    text = described.write(_PROBED_CALLS)
    is_read = not text or any(_reads(found, _Rendered(text, text), closed=closed) for closed in (True, False))
    return described.unread if is_read else (*described.unread, "tool_calls")


def _described_tool_format(described: ResponseTemplate, tokenizer: Tokenizer) -> ToolFormat | None:
    """Return the format that reads calls as a response template describes them, and as the chat template writes them.

    It is one of the table, or else derived from the description. None if there is none.
    """
    if not (text := described.write(_PROBED_CALLS)):
        return None
    template = _template_of(tokenizer)
    written = _Rendered.of(template) if template is not None else None
    calls = [call for call in (_Rendered(text, text), written) if call is not None]
    readers = [
        tool_format
        for tool_format in FORMATS.values()
        if all(any(_reads(tool_format, call, closed=closed) for closed in (True, False)) for call in calls)
    ]
    if readers:
        return max(readers, key=lambda reader: _likeness(reader, calls[-1].text))
    samples: list[Sample] = [(some, text) for some in _SAMPLES if (text := described.write(some))]
    for candidate in derive_from_samples(samples):
        if all(any(_reads(candidate, call, closed=closed) for closed in (True, False)) for call in calls):
            return replace(candidate, name=RESPONSE_TEMPLATE)
    return None


def tool_format_note(syntax: Syntax) -> str | None:
    """Return what a user should know about how the format of tool calls was found, and the remedy; None if nothing."""
    remedy = "`lmwire models --tool-formats` lists the formats, and `tool_format` of a load names one."
    return f"{problem} {remedy}" if (problem := describe_search(syntax)) else None


def describe_search(syntax: Syntax) -> str | None:
    """Return what it means that no known format was found for a model; None if one was."""
    sentences = (_describe_unread(syntax.unread), _describe_format(syntax))
    return " ".join(filter(None, sentences)) or None


def _describe_unread(unread: tuple[str, ...]) -> str | None:
    if not unread:
        return None
    what = (
        "the model's response_template"
        if unread == ("all",)
        else f"these fields of the model's response_template: {', '.join(unread)}"
    )
    return f"lmwire does not read {what}."


def _describe_format(syntax: Syntax) -> str | None:
    tools = syntax.tools
    if tools is not None and syntax.assumes_tools:
        return (
            f"The model's files show no format of tool calls that lmwire can read, so prompts describe {tools.name}. A "
            "model that learnt another format may call no tool."
        )
    if tools is not None and tools.name == DERIVED:
        return (
            "The format of tool calls is derived from the calls that the chat template writes, which start with "
            f"{tools.start}. If calls come as text, the model writes another format."
        )
    return None


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

    It is the one that reads back the calls that the chat template writes, or else one derived from these calls. If the
    template writes none, signs in the template, the tokenizer's settings and the vocabulary decide. The last resort is
    a format that the prompt can describe: Python for Gemma, and JSON for other models.

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
    named = FORMATS.get(tokenizer.tool_parser_type or "")
    if (template := _template_of(tokenizer)) is not None:
        if call := _Rendered.of(template):  # no guess: a format that cannot read it would lose the model's calls
            found = _read_back(call)
            return _as_written(found, template) if found else derive_tool_format(template) or named
        for sign, name in _SIGNS.items():
            if sign in template.source:
                return FORMATS[name]
        if (found := _format_in_source(template.source)) is not None:
            return found
    if named is not None:
        return named
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


class _Rendered(NamedTuple):
    """A call as a template writes it."""

    text: str
    """The call with the opening of the turn, which may have the format's start marker."""
    turn: str
    """The call alone; with the opening if that is not known."""

    @classmethod
    def of(cls, template: ChatTemplate) -> "_Rendered | None":
        try:
            text = render_call(template)
            if FUNCTION not in text or VALUE not in text:
                return None
            turn = without_opening(template, text)
        except RequestError:  # a limit: the template's requests report it
            return None
        return cls(text, text if turn is None else turn.lstrip())


def _read_back(call: _Rendered) -> ToolFormat | None:
    """Return the format that reads exactly the call that a template writes, or None if there is none.

    Some templates forget the end marker of a section.
    """
    for closed in (True, False):
        readers = [tool_format for tool_format in FORMATS.values() if _reads(tool_format, call, closed=closed)]
        if readers:
            return max(readers, key=lambda reader: _likeness(reader, call.text))
    return None


def _as_written(found: ToolFormat, template: ChatTemplate) -> ToolFormat:
    """Return a format with the white space and brackets around the calls of a section that a template writes there."""
    if found.between_calls is None:
        return found
    try:
        calls, text = render_two_calls(template)
    except RequestError:
        return found
    rest = text.partition(found.start)[2] if found.start else text
    parts: list[str] = []
    for index, call in enumerate(calls):
        part, written, rest = rest.partition(found.shape.write(WrittenCall(call.name, call.arguments, call.id), index))
        if not written:
            return found
        parts.append(part)
    before, between = parts[0], parts[1] if len(parts) > 1 else found.between_calls
    after, closed, _ = rest.partition(found.end) if found.end else (found.after, "", "")
    if (found.end and not closed) or not all(map(_AROUND_CALLS.fullmatch, (before, between, after))):
        return found
    return replace(found, before=before, between_calls=between, after=after)


def _likeness(tool_format: ToolFormat, text: str) -> int:
    """Return how well the text of a format agrees with a template's: 2 exactly, 1 but for white space, 0 otherwise."""
    written = [tool_format.write([WrittenCall(FUNCTION, _ARGUMENTS, call_id)]) for call_id in CALL_IDS]
    words = "".join(text.split())
    return max((call in text) + ("".join(call.split()) in words) for call in written)


def _reads(tool_format: ToolFormat, call: _Rendered, *, closed: bool) -> bool:
    """Return whether a format reads exactly the probe's call, with or without the section's end marker."""
    _, found, text = call.text.partition(tool_format.start) if tool_format.start else ("", "", "")
    if not found:
        if not tool_format.bare:
            return False
        text = call.turn
    if tool_format.end:
        text, end, _ = text.partition(tool_format.end)
        if bool(end) != closed:
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
