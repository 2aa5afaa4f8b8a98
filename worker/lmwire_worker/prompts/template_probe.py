"""Probe a chat template with small conversations, to find which messages it accepts and in which form."""

import itertools
import json
import re
from collections.abc import Sequence
from typing import Any, Final
from weakref import WeakKeyDictionary

from msgspec import Struct
from msgspec.structs import replace

from lmwire_protocol import RequestError

from ..media import MediaKind
from .chat_template import ChatTemplate
from .media_notes import MEDIA_MARKERS
from .turns import ToolCall, Turn

# Words that no template contains.
SYSTEM, USER, LATER, ANSWER, REASONING, RESULT, FUNCTION, VALUE = (
    f"qv{word}" for word in ("system", "user", "later", "answer", "reasoning", "result", "function", "value")
)
CALL_IDS: Final = ("call_qv", "0" * 9)
"""Id of the call of FUNCTION, and its form in templates that demand nine digits."""
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
_PART_TYPES: Final[dict[MediaKind, str]] = {"image": "image", "sound": "audio"}
"""The names of parts in templates."""
_MEDIA_MARKER: Final = re.compile(f"({'|'.join(MEDIA_MARKERS.values())})")
_ASKED: Final = Turn("user", USER)
_ANSWERED: Final = Turn("tool", RESULT, call_id=_FIRST_CALL.id, name=FUNCTION)


class MessageFormat(Struct, frozen=True):
    """The form in which a template takes turns. All fields are false for the most common form."""

    content_parts: bool = False
    """Content is a list of parts."""
    null_content: bool = False
    """Content is null in a message that has calls and no text."""
    arguments_as_text: bool = False
    """A call's arguments are JSON text."""
    short_ids: bool = False
    """A call's id has nine digits."""
    single_calls: bool = False
    """A message has at most one call, and its result follows."""
    calls_without_text: bool = False
    """A message with calls has no text; text before the calls is a separate message."""

    def messages(self, turns: Sequence[Turn]) -> list[dict[str, Any]]:
        """Return turns as OpenAI's messages, in this form."""
        if self.single_calls:
            turns = _split_calls(turns)
        ids = {call.id: f"{number:09}" for number, call in enumerate(c for turn in turns for c in turn.calls)}
        return [self._message(part, ids) for turn in turns for part in self._split(turn)]

    def _split(self, turn: Turn) -> list[Turn]:
        if self.calls_without_text and turn.calls and turn.text:
            return [replace(turn, calls=(), reasoning=""), replace(turn, text="")]
        return [turn]

    def _message(self, turn: Turn, ids: dict[str, str]) -> dict[str, Any]:
        content = _content_parts(turn.text) if self.content_parts or _MEDIA_MARKER.search(turn.text) else turn.text
        message: dict[str, Any] = {"role": turn.role, "content": content}
        if turn.reasoning:  # under the names that templates know
            message |= dict.fromkeys(("reasoning_content", "reasoning", "thinking", "thought"), turn.reasoning)
        if turn.calls:
            message["tool_calls"] = [self._called(call, ids) for call in turn.calls]
            if self.null_content and not turn.text:
                message["content"] = None
        if turn.role == "tool":
            message["tool_call_id"] = ids.get(turn.call_id, "0" * 9) if self.short_ids else turn.call_id
            if turn.name:
                message["name"] = turn.name
        return message

    def _called(self, call: ToolCall, ids: dict[str, str]) -> dict[str, Any]:
        arguments = json.dumps(call.arguments, ensure_ascii=False) if self.arguments_as_text else call.arguments
        function = {"name": call.name, "arguments": arguments}
        return {"id": ids[call.id] if self.short_ids else call.id, "type": "function", "function": function}


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
    if not any(_writes(template, MessageFormat(parts), [_ASKED], USER) for parts in (False, True)):
        template = replace(template, no_tools=())
    form = MessageFormat(content_parts=not _writes(template, MessageFormat(), [_ASKED], USER))
    system = Turn("system", SYSTEM)
    late = [system, _ASKED, Turn("assistant", ANSWER), Turn("system", REASONING), Turn("user", LATER)]
    described = _writes(template, form, [_ASKED], FUNCTION, tools=True)
    tools_need_system = not described and _writes(template, form, [system, _ASKED], FUNCTION, tools=True)
    with_calls = _find_calls(template, form)
    with_results = with_calls or form
    return TemplateTraits(
        template=template,
        message_format=with_calls or form,
        system=_writes(template, form, [system, _ASKED], SYSTEM, USER),
        late_system=_writes(template, form, late, SYSTEM, USER, ANSWER, REASONING, LATER),
        same_role_neighbours=_writes(template, form, [_ASKED, Turn("user", LATER)], USER, LATER),
        assistant_first=_writes(template, form, [Turn("assistant", ANSWER), _ASKED], ANSWER, USER),
        tools=described or tools_need_system,
        calls=with_calls is not None,
        results=_writes(template, with_results, _called(with_calls), USER, RESULT, tools=True),
        tools_need_system=tools_need_system,
    )


def _called(with_calls: MessageFormat | None) -> list[Turn]:
    """Return a conversation with a result, after a call if the template writes calls."""
    call = Turn("assistant", "", calls=(_FIRST_CALL,)) if with_calls else Turn("assistant", ANSWER)
    return [_ASKED, call, _ANSWERED]


def render_call(template: ChatTemplate) -> str:
    """Return a call of FUNCTION as a template writes it after a user's message; empty if it writes none.

    Args:
        template: The template.

    Raises:
        RequestError: invalid_request: the template exceeds a limit.
    """
    traits = probe_template(template)
    turns = [_ASKED, Turn("assistant", "", calls=(_FIRST_CALL,))]
    if traits.tools_need_system:
        turns = [Turn("system", SYSTEM), *turns]
    messages = traits.message_format.messages(turns)
    text = traits.template.try_render(messages, [_TOOL], add_generation_prompt=False)
    return text.rpartition(USER)[2] if traits.calls else ""


def render_opening(template: ChatTemplate) -> str:
    """Return the end of a conversation that opens the assistant's turn.

    Args:
        template: The template.

    Raises:
        RequestError: invalid_request: the template exceeds a limit.
    """
    traits = probe_template(template)
    return traits.template.try_render(traits.message_format.messages([_ASKED])).rpartition(USER)[2]


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
    for calls in ((), (_FIRST_CALL,)):
        turns = [_ASKED, Turn("assistant", ANSWER, reasoning=REASONING, calls=calls)]
        messages, tools = traits.message_format.messages(turns), [_TOOL] if calls else None
        text = traits.template.try_render(messages, tools, add_generation_prompt=False, **variables)
        if REASONING in text:
            return text.rpartition(USER)[2]
    return ""


def _find_calls(template: ChatTemplate, form: MessageFormat) -> MessageFormat | None:
    """Return the first form in which the template writes a call, from the most common form on, or None.

    A form in which it writes the call's result too goes first.
    """
    called = Turn("assistant", "", calls=(_FIRST_CALL,))
    forms = [
        replace(form, null_content=null_content, arguments_as_text=as_text, short_ids=short_ids)
        for null_content, as_text, short_ids in itertools.product((False, True), repeat=3)
    ]
    for turns, words in (([called, _ANSWERED], (FUNCTION, VALUE, RESULT)), ([called], (FUNCTION, VALUE))):
        for candidate in forms:
            if _writes(template, candidate, [_ASKED, *turns], *words, tools=True):
                return _find_limits(template, candidate)
    return None


def _find_limits(template: ChatTemplate, form: MessageFormat) -> MessageFormat:
    """Return the form, with the limits of templates that refuse or drop a second call, or text beside a call."""
    both = Turn("assistant", "", calls=(_FIRST_CALL, _SECOND_CALL))
    results = [_ANSWERED, Turn("tool", ANSWER, call_id=_SECOND_CALL.id, name=_SECOND_CALL.name)]
    if not _writes(template, form, [_ASKED, both, *results], VALUE, _SECOND_CALL.name, ANSWER, tools=True):
        form = replace(form, single_calls=True)
    full = Turn("assistant", ANSWER, reasoning=REASONING, calls=(_FIRST_CALL,))
    turns = [_ASKED, full, _ANSWERED, Turn("assistant", LATER)]
    for candidate in (form, replace(form, calls_without_text=True)):
        if _writes(template, candidate, turns, ANSWER, VALUE, LATER, tools=True):
            return candidate
    return form


def _writes(
    template: ChatTemplate, form: MessageFormat, turns: Sequence[Turn], *words: str, tools: bool = False
) -> bool:
    text = template.try_render(form.messages(turns), [_TOOL] if tools else None)
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
