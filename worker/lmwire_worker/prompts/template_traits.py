"""Traits of a chat template: what it accepts and writes. Small conversations of words in no template find them."""

import itertools
import json
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, Final
from weakref import WeakKeyDictionary

from msgspec import Struct
from msgspec.structs import replace

from lmwire_protocol import RequestError
from lmwire_protocol.imports import lazy_pattern

from ..media import MediaKind
from .chat_template import ChatTemplate, Probe
from .turns import MEDIA_MARKERS, ToolCall, Turn

# Words that no template contains.
SYSTEM, USER, LATER, ANSWER, REASONING, RESULT, FUNCTION, VALUE = (
    f"qv{word}" for word in ("system", "user", "later", "answer", "reasoning", "result", "function", "value")
)
CALL_IDS: Final = ("call_qv", "0" * 9)
"""Id of the call of FUNCTION, and its form in templates that demand nine letters or digits."""
_FIRST_CALL: Final = ToolCall(CALL_IDS[0], FUNCTION, {"word": VALUE})
_SECOND_CALL: Final = ToolCall("call_qw", f"{LATER}function", {"word": LATER})
PARAMETERS: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {"word": {"type": "string", "description": "A word."}},
}
_TOOL: Final[dict[str, Any]] = {
    "type": "function",
    "function": {"name": FUNCTION, "description": "Does it.", "parameters": PARAMETERS | {"required": ["word"]}},
}
_SAMPLE_NAMES: Final = (FUNCTION, f"{LATER}function")
SAMPLE_PARAMETERS: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {"qvfirst": {"type": "string"}, "qvsecond": {"type": "string"}, "qvcount": {"type": "integer"}},
}
_SAMPLE_TOOLS: Final[list[dict[str, Any]]] = [
    {"type": "function", "function": {"name": name, "description": "Does it.", "parameters": SAMPLE_PARAMETERS}}
    for name in _SAMPLE_NAMES
]
_SAMPLE_CALLS: Final = (
    ToolCall(CALL_IDS[0], _SAMPLE_NAMES[0], {"qvfirst": VALUE, "qvsecond": ANSWER}),
    ToolCall("call_qw", _SAMPLE_NAMES[1], {"qvfirst": RESULT}),
    ToolCall(CALL_IDS[0], _SAMPLE_NAMES[0], {"qvcount": 7, "qvfirst": f"\"{LATER}\" 'it' <b>\n  {{x}} [\\n]"}),
)
_PART_TYPES: Final[dict[MediaKind, str]] = {"image": "image", "sound": "audio"}
"""The names of parts in templates."""
_MEDIA_MARKER: Final = lazy_pattern(f"({'|'.join(MEDIA_MARKERS.values())})")
_REASONING_NAMES: Final = ("reasoning_content", "reasoning", "thinking", "thought", "tool_plan")
"""The names under which templates read a message's reasoning."""
_SHORT_ID: Final = lazy_pattern(r"[A-Za-z0-9]{9}")
_ASKED: Final = Turn("user", USER)
_ANSWERED: Final = Turn("tool", RESULT, call_id=_FIRST_CALL.id, name=FUNCTION)
_SAID: Final = Turn("assistant", ANSWER)
_CALLED: Final = Turn("assistant", "", calls=(_FIRST_CALL,))
_SAID_AND_CALLED: Final = Turn("assistant", ANSWER, calls=(_FIRST_CALL,))
_TWO_CALLS: Final = [
    _ASKED,
    Turn("assistant", "", calls=(_FIRST_CALL, _SECOND_CALL)),
    _ANSWERED,
    Turn("tool", ANSWER, call_id=_SECOND_CALL.id, name=_SECOND_CALL.name),
]
_TURN_WITH_ALL: Final = [
    _ASKED,
    Turn("assistant", ANSWER, reasoning=REASONING, calls=(_FIRST_CALL,)),
    _ANSWERED,
    Turn("assistant", LATER),
]
_LATE_SYSTEM: Final = [Turn("system", SYSTEM), _ASKED, _SAID, Turn("system", REASONING), Turn("user", LATER)]
_NEIGHBOURS: Final = [_ASKED, Turn("user", LATER)]


class MessageFormat(Struct, frozen=True):
    """The form in which a template takes turns. All fields are false for the most common form."""

    content_parts: bool = False
    """Content is a list of parts."""
    null_content: bool = False
    """Content is null in a message that has calls and no text."""
    arguments_as_text: bool = False
    """A call's arguments are JSON text."""
    short_ids: bool = False
    """A call's id has nine letters or digits."""
    named_ids: bool = False
    """A call's id has the function's name, which the template writes nowhere else."""
    single_calls: bool = False
    """A message has at most one call, and its result follows."""
    calls_without_text: bool = False
    """A message with calls has no text; text before the calls is a separate message."""
    thinking_parts: bool = False
    """Reasoning is a part of the content."""
    reasoning_space: tuple[str, str] = ("", "")
    """White space that the template writes before and after reasoning. The model's own is not written beside it."""
    content_space: str = ""
    """The same between reasoning and text."""
    call_space: str = ""
    """The same between text and calls."""

    def messages(self, turns: Sequence[Turn]) -> list[dict[str, Any]]:
        """Return turns as OpenAI's messages, in this form."""
        if self.single_calls:
            turns = _split_calls(turns)
        ids = self._ids([call for turn in turns for call in turn.calls])
        return [self._message(part, ids) for turn in turns for part in self._split(turn)]

    def with_ids(self, calls: Sequence[ToolCall]) -> tuple[ToolCall, ...]:
        """Return calls with ids that the template takes."""
        ids = self._ids(calls)
        return tuple(replace(call, id=ids[call.id]) for call in calls)

    def _ids(self, calls: Sequence[ToolCall]) -> dict[str, str]:
        """Return ids that the template takes, by the calls' own. These stay if all of them have the form."""
        if self.short_ids and not all(_SHORT_ID.fullmatch(call.id) for call in calls):
            return {call.id: f"{number:09}" for number, call in enumerate(calls)}
        if self.named_ids and not all(re.fullmatch(rf".*\b{re.escape(call.name)}:\d+", call.id) for call in calls):
            return {call.id: f"functions.{call.name}:{number}" for number, call in enumerate(calls)}
        return {call.id: call.id for call in calls}

    def _split(self, turn: Turn) -> list[Turn]:
        if self.calls_without_text and turn.calls and turn.text:
            return [replace(turn, calls=(), reasoning=""), replace(turn, text="")]
        return [turn]

    def _message(self, turn: Turn, ids: dict[str, str]) -> dict[str, Any]:
        before, after = self.reasoning_space
        reasoning = turn.reasoning.removeprefix(before).removesuffix(after)
        text = turn.text.removeprefix(self.content_space) if reasoning else turn.text
        text = text.removesuffix(self.call_space) if turn.calls else text
        content = _content_parts(text) if self.content_parts or _MEDIA_MARKER.search(text) else text
        message: dict[str, Any] = {"role": turn.role, "content": content}
        if turn.name:
            message["name"] = turn.name
        if reasoning and self.thinking_parts:
            thinking = {"type": "thinking", "thinking": reasoning}
            message["content"] = [thinking, *(_content_parts(text) if text else ())]
        elif reasoning:
            message |= dict.fromkeys(_REASONING_NAMES, reasoning)
        if turn.calls:
            message["tool_calls"] = [self._called(call, ids) for call in turn.calls]
            if self.null_content and not text:
                message["content"] = None
        if turn.role == "tool":
            message["tool_call_id"] = ids.get(turn.call_id, "0" * 9 if self.short_ids else turn.call_id)
        return message

    def _called(self, call: ToolCall, ids: dict[str, str]) -> dict[str, Any]:
        arguments = json.dumps(call.arguments, ensure_ascii=False) if self.arguments_as_text else call.arguments
        function = {"name": call.name, "arguments": arguments}
        return {"id": ids[call.id], "type": "function", "function": function}


class TemplateTraits(Struct, frozen=True):
    """The features of a template."""

    template: ChatTemplate
    """The template, which gets an empty list for no tools if it demands a list."""
    message_format: MessageFormat
    system: bool
    """Writes a system message at the front."""
    late_system: bool
    """Writes a system message after other messages."""
    same_role_neighbours: bool
    """Writes two messages of one role in a row."""
    assistant_first: bool
    """Writes a conversation that begins with the assistant's turn."""
    tools: bool
    """Writes the descriptions of tools."""
    calls: bool
    """Writes calls."""
    results: bool
    """Writes the results of calls."""
    tools_need_system: bool
    """Writes tools only if the conversation has a system message."""


_PROBED: Final[WeakKeyDictionary[ChatTemplate, TemplateTraits | RequestError]] = WeakKeyDictionary()


def probe_template(template: ChatTemplate) -> TemplateTraits:
    """Return a template's features, which are found once. A feature that makes the template fail is unsupported.

    Raises:
        RequestError: invalid_request: the template exceeds a limit even for small conversations.
    """
    if (found := _PROBED.get(template)) is None:
        try:
            found = _probe(template)
        except RequestError as error:
            found = error
        _PROBED[template] = found
    if isinstance(found, RequestError):
        raise found.with_traceback(None)
    return found


def _probe(template: ChatTemplate) -> TemplateTraits:
    forms = MessageFormat(), MessageFormat(content_parts=True)
    template.render_ahead(_usual_probes(forms[0]))
    form = next((form for form in forms if _writes(template, form, [_ASKED], USER)), None)
    if form is None:
        template = replace(template, no_tools=())
        form = next((form for form in forms if _writes(template, form, [_ASKED], USER)), forms[1])
    if form is not forms[0] or template.no_tools is not None:
        template.render_ahead(_usual_probes(form))
    system = [Turn("system", SYSTEM), _ASKED]
    described = _writes(template, form, [_ASKED], FUNCTION, tools=True)
    tools_need_system = not described and _writes(template, form, system, FUNCTION, tools=True)
    with_calls, results = _find_calls(template, form)
    form = _find_reasoning(template, with_calls or form)
    return TemplateTraits(
        template=template,
        message_format=form,
        system=_writes(template, form, system, SYSTEM, USER),
        late_system=_writes(template, form, _LATE_SYSTEM, SYSTEM, USER, ANSWER, REASONING, LATER),
        same_role_neighbours=_writes(template, form, _NEIGHBOURS, USER, LATER),
        assistant_first=_writes(template, form, [_SAID, _ASKED], ANSWER, USER),
        tools=described or tools_need_system,
        calls=with_calls is not None,
        results=results or _writes(template, form, _called(with_calls), USER, RESULT, tools=True),
        tools_need_system=tools_need_system,
    )


def _usual_probes(form: MessageFormat) -> Iterator[Probe]:
    """Yield the conversations that the search for a template's features renders if the template takes a form."""
    with_tools = [_ASKED], [_ASKED, _CALLED, _ANSWERED], [_ASKED, _CALLED], _TWO_CALLS, _TURN_WITH_ALL
    without = [_ASKED], [Turn("system", SYSTEM), _ASKED], _LATE_SYSTEM, _NEIGHBOURS, [_SAID, _ASKED]
    for tools, conversations in (([_TOOL], with_tools), (None, without)):
        for turns in conversations:
            yield Probe(form.messages(turns), tools)
    for tools, turn in (
        ([_TOOL], _CALLED),
        ([_TOOL], _SAID_AND_CALLED),
        ([_TOOL], _TURN_WITH_ALL[1]),
        (None, Turn("assistant", ANSWER, reasoning=REASONING)),
        (None, _SAID),
    ):
        yield Probe(form.messages([_ASKED, turn]), tools, add_generation_prompt=False)


def _called(with_calls: MessageFormat | None) -> list[Turn]:
    """Return a conversation with a result, after a call if the template writes calls."""
    return [_ASKED, _CALLED if with_calls else _SAID, _ANSWERED]


def render_call(template: ChatTemplate) -> str:
    """Return a call of FUNCTION as a template writes it after a user's message; empty if it writes none.

    Args:
        template: The template.

    Raises:
        RequestError: invalid_request: the template exceeds a limit.
    """
    traits = probe_template(template)
    turns = [_ASKED, _CALLED]
    if traits.tools_need_system:
        turns = [Turn("system", SYSTEM), *turns]
    messages = traits.message_format.messages(turns)
    text = traits.template.probe(Probe(messages, [_TOOL], add_generation_prompt=False))
    return text.rpartition(USER)[2] if traits.calls else ""


def render_two_calls(template: ChatTemplate) -> tuple[tuple[ToolCall, ...], str]:
    """Return two calls, or one if a turn has one, and what a template writes after a user's message with them.

    The text goes on with the results of the calls. It is empty if the template writes no calls.

    Args:
        template: The template.

    Raises:
        RequestError: invalid_request: the template exceeds a limit.
    """
    traits = probe_template(template)
    form = traits.message_format
    turns = [_ASKED, _CALLED, _ANSWERED] if form.single_calls else _TWO_CALLS
    if traits.tools_need_system:
        turns = [Turn("system", SYSTEM), *turns]
    text = traits.template.probe(Probe(form.messages(turns), [_TOOL])) if traits.calls else ""
    return form.with_ids([call for turn in turns for call in turn.calls]), text.rpartition(USER)[2]


def render_samples(template: ChatTemplate) -> list[tuple[tuple[ToolCall, ...], str]]:
    """Return calls, and each time their text in the assistant's turn; empty if the template does not write them so.

    The first sample has two calls, the first of them with two arguments, or that one alone if a turn has one call. In
    the others, a call has one text, and a number and a text with quotes, line breaks and tags.

    Args:
        template: The template.

    Raises:
        RequestError: invalid_request: the template exceeds a limit.
    """
    traits = probe_template(template)
    if not traits.calls:
        return []
    before = [Turn("system", SYSTEM)] if traits.tools_need_system else []

    def render(turn: Turn) -> str:
        messages = traits.message_format.messages([*before, _ASKED, turn])
        text = traits.template.try_render(messages, _SAMPLE_TOOLS, add_generation_prompt=False)
        return text.rpartition(USER)[2]

    closing = render(Turn("assistant", ANSWER)).partition(ANSWER)[2].strip()
    first, *others = _SAMPLE_CALLS
    samples: list[tuple[tuple[ToolCall, ...], str]] = []
    for calls in ((first,) if traits.message_format.single_calls else _SAMPLE_CALLS[:2], *((call,) for call in others)):
        text = without_opening(template, render(Turn("assistant", "", calls=calls)))
        if text is None:
            return []
        named = traits.message_format.with_ids(calls)
        samples.append((named, text.rstrip().removesuffix(closing).strip()))
    return samples


def without_opening(template: ChatTemplate, text: str) -> str | None:
    """Return what an assistant's turn has after its opening; None if the template opens it in another way.

    Args:
        template: The template.
        text: The turn, with what follows the user's message.

    Raises:
        RequestError: invalid_request: the template exceeds a limit.
    """
    traits = probe_template(template)
    messages = traits.message_format.messages([_ASKED, _SAID])
    answered, found, _ = traits.template.probe(Probe(messages, add_generation_prompt=False)).partition(ANSWER)
    openings = sorted({answered.rpartition(USER)[2] if found else "", render_opening(template)}, key=len, reverse=True)
    return next((text.removeprefix(opening) for opening in openings if opening and text.startswith(opening)), None)


@lru_cache(maxsize=4)
def render_opening(template: ChatTemplate) -> str:
    """Return the end of a conversation that opens the assistant's turn.

    Args:
        template: The template.

    Raises:
        RequestError: invalid_request: the template exceeds a limit.
    """
    traits = probe_template(template)
    return traits.template.probe(Probe(traits.message_format.messages([_ASKED]))).rpartition(USER)[2]


def render_reasoning(template: ChatTemplate, **variables: Any) -> str:
    """Return a turn with reasoning as a template writes it after a user's message; empty if it writes none.

    The turn has ANSWER too. Some templates write reasoning only before a call, so the turn has one if needed.

    Args:
        template: The template.
        **variables: Template variables, such as those that turn reasoning on.

    Raises:
        RequestError: invalid_request: the template exceeds a limit.
    """
    traits = probe_template(template)
    return _render_reasoning(traits.template, traits.message_format, variables)


def _render_reasoning(template: ChatTemplate, form: MessageFormat, variables: dict[str, Any]) -> str:
    for calls in ((), (_FIRST_CALL,)):
        turns = [_ASKED, Turn("assistant", ANSWER, reasoning=REASONING, calls=calls)]
        tools = [_TOOL] if calls else None
        text = template.probe(Probe(form.messages(turns), tools, add_generation_prompt=False, variables=variables))
        if REASONING in text:
            return text.rpartition(USER)[2]
    return ""


def _find_reasoning(template: ChatTemplate, form: MessageFormat) -> MessageFormat:
    """Return the form with reasoning where the template reads it, and the white space between a turn's parts."""
    text = _render_reasoning(template, form, {})
    if not text:
        in_parts = replace(form, thinking_parts=True)
        text = _render_reasoning(template, in_parts, {})
        if re.search(r"""["']thinking["']""", text):  # some write a part that they do not know as JSON
            text = ""
        form = in_parts if text else form
    before, _, after = text.partition(REASONING)
    between, answered, _ = after.partition(ANSWER)
    rest = template.probe(Probe(form.messages([_ASKED, _SAID_AND_CALLED]), [_TOOL], add_generation_prompt=False))
    return replace(
        form,
        reasoning_space=(before[len(before.rstrip()) :], _leading_space(after)),
        content_space=between[len(between.rstrip()) :] if answered else "",
        call_space=_leading_space(rest.rpartition(ANSWER)[2]),
    )


def _leading_space(text: str) -> str:
    return text[: len(text) - len(text.lstrip())]


def _find_calls(template: ChatTemplate, form: MessageFormat) -> tuple[MessageFormat | None, bool]:
    """Return the first form in which the template writes a call, from the most common form on, or None.

    A form in which it writes the call's result too goes first. Also returns whether it does.
    """
    forms = [
        replace(form, null_content=null_content, arguments_as_text=as_text, short_ids=short_ids)
        for null_content, as_text, short_ids in itertools.product((False, True), repeat=3)
    ]
    for turns, words in (([_CALLED, _ANSWERED], (FUNCTION, VALUE, RESULT)), ([_CALLED], (FUNCTION, VALUE))):
        for candidate in forms:
            if _writes(template, candidate, [_ASKED, *turns], *words, tools=True):
                return _find_limits(template, candidate), len(turns) > 1
    return None, False


def _find_limits(template: ChatTemplate, form: MessageFormat) -> MessageFormat:
    """Return the form, with the limits of templates that refuse or drop a second call, or text beside a call.

    An id has the function's name where the template writes only the id.
    """
    text = template.probe(Probe(form.messages([_ASKED, _CALLED]), [_TOOL]))
    written = text.rpartition(USER)[2]
    if _FIRST_CALL.id in written and FUNCTION not in written:
        form = replace(form, named_ids=True)
    if not _writes(template, form, _TWO_CALLS, VALUE, _SECOND_CALL.name, ANSWER, tools=True):
        form = replace(form, single_calls=True)
    for candidate in (form, replace(form, calls_without_text=True)):
        if _writes(template, candidate, _TURN_WITH_ALL, ANSWER, VALUE, LATER, tools=True):
            return candidate
    return form


def _writes(
    template: ChatTemplate, form: MessageFormat, turns: Sequence[Turn], *words: str, tools: bool = False
) -> bool:
    text = template.probe(Probe(form.messages(turns), [_TOOL] if tools else None))
    return all(word in text for word in words)


def writes_role(template: ChatTemplate, role: str) -> bool:
    """Return whether a template writes messages of a role that is not one of `ROLES`, at any place.

    Args:
        template: The template.
        role: The role.
    """
    traits = probe_template(template)
    template, form = traits.template, traits.message_format
    other, later = Turn(role, ANSWER), Turn("user", LATER)
    return _writes(template, form, [_ASKED, other, later], USER, ANSWER, LATER) and _writes(
        template, form, [other, later], ANSWER, LATER
    )


def writes_placeholder(template: ChatTemplate, kind: MediaKind, placeholder: str) -> bool:
    """Return whether a template writes the placeholder for media, at its place in the message.

    Args:
        template: The template.
        kind: The kind of media.
        placeholder: The text that the model's processor expects.
    """
    content = [{"type": _PART_TYPES[kind]}, {"type": "text", "text": USER}]
    _, found, after = template.try_render([{"role": "user", "content": content}]).partition(placeholder)
    return bool(found) and placeholder not in after and USER in after


def _content_parts(text: str) -> list[dict[str, str]]:
    """Return a text as a list of parts, with a part for each media marker."""
    types = {MEDIA_MARKERS[kind]: name for kind, name in _PART_TYPES.items()}
    pieces = _MEDIA_MARKER.split(text)
    parts = [{"type": types[piece]} if piece in types else {"type": "text", "text": piece} for piece in pieces]
    return [part for part in parts if part.get("text") != "" or len(parts) == 1]


def _split_calls(turns: Sequence[Turn]) -> list[Turn]:
    """Return turns with at most one call each, followed by its result."""
    single: list[Turn] = []
    rest = list(turns)
    while rest:
        turn = rest.pop(0)
        if len(turn.calls) < 2:
            single.append(turn)
            continue
        count = next((index for index, other in enumerate(rest) if other.role != "tool"), len(rest))
        results, rest = rest[:count], rest[count:]
        for index, call in enumerate(turn.calls):
            said = replace(turn, calls=(call,))
            single.append(said if index == 0 else replace(said, text="", reasoning=""))
            single += [result for result in results if result.call_id == call.id]
        known = {call.id for call in turn.calls}
        single += [result for result in results if result.call_id not in known]
    return single
