"""What a chat template takes, found out by letting it write small conversations; and turns in the shape it takes."""

import itertools
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final
from weakref import WeakKeyDictionary

from lmwire_protocol import RequestError

from ..media import Kind
from .chat_template import ChatTemplate
from .media_notes import MARKS
from .turns import Call, Turn

# Words that no template writes by itself.
SYSTEM, USER, LATER, ANSWER, THOUGHT, RESULT, FUNCTION, VALUE = (
    f"qv{word}" for word in ("system", "user", "later", "answer", "thought", "result", "function", "value")
)
_CALL: Final = Call("call_qv", FUNCTION, {"word": VALUE})
_SECOND: Final = Call("call_qw", f"{LATER}function", {"word": LATER})
_PARAMETERS: Final = {"type": "object", "properties": {"word": {"type": "string", "description": "A word."}}}
_TOOL: Final[dict[str, Any]] = {
    "type": "function",
    "function": {"name": FUNCTION, "description": "Does it.", "parameters": _PARAMETERS | {"required": ["word"]}},
}
_PART_TYPES: Final[dict[Kind, str]] = {"image": "image", "sound": "audio"}
"""As templates call them."""
_MARK: Final = re.compile(f"({'|'.join(MARKS.values())})")
_ASKED: Final = Turn("user", USER)
_ANSWERED: Final = Turn("tool", RESULT, call_id=_CALL.id, name=FUNCTION)


@dataclass(frozen=True, slots=True)
class Shape:
    """The form in which a template takes turns. False everywhere is the commonest form."""

    parts: bool = False
    """A message's content is a list of parts."""
    no_content: bool = False
    """Of a message with calls and no text: the content is null."""
    text_arguments: bool = False
    """A call's arguments are JSON text."""
    short_ids: bool = False
    """A call's id has nine digits."""
    single_calls: bool = False
    """A message has one call at most, and its result follows it."""
    bare_calls: bool = False
    """A message with calls has no text; what is said before them is a message of its own."""

    def messages(self, turns: Sequence[Turn]) -> list[dict[str, Any]]:
        """Turns in OpenAI's shape, with the differences that this template wants."""
        if self.single_calls:
            turns = _one_by_one(turns)
        ids = {call.id: f"{number:09}" for number, call in enumerate(c for turn in turns for c in turn.calls)}
        return [self._message(part, ids) for turn in turns for part in self._split(turn)]

    def _split(self, turn: Turn) -> list[Turn]:
        if self.bare_calls and turn.calls and turn.text:
            return [replace(turn, calls=(), reasoning=""), replace(turn, text="")]
        return [turn]

    def _message(self, turn: Turn, ids: dict[str, str]) -> dict[str, Any]:
        content = _parts(turn.text) if self.parts or _MARK.search(turn.text) else turn.text
        message: dict[str, Any] = {"role": turn.role, "content": content}
        if turn.reasoning:  # under the names that templates know
            message |= {"reasoning_content": turn.reasoning, "thinking": turn.reasoning}
        if turn.calls:
            message["tool_calls"] = [self._called(call, ids) for call in turn.calls]
            if self.no_content and not turn.text:
                message["content"] = None
        if turn.role == "tool":
            message["tool_call_id"] = ids.get(turn.call_id, "0" * 9) if self.short_ids else turn.call_id
            if turn.name:
                message["name"] = turn.name
        return message

    def _called(self, call: Call, ids: dict[str, str]) -> dict[str, Any]:
        arguments = json.dumps(call.arguments, ensure_ascii=False) if self.text_arguments else call.arguments
        function = {"name": call.name, "arguments": arguments}
        return {"id": ids[call.id] if self.short_ids else call.id, "type": "function", "function": function}


@dataclass(frozen=True, slots=True)
class Traits:
    """What a template writes of what it is given."""

    shape: Shape
    system: bool
    """A system message, at the front."""
    late_system: bool
    """Another one further back."""
    neighbours: bool
    """Two messages of one role, one behind the other."""
    tools: bool
    """Descriptions of tools, calls of them and their results."""
    tools_need_system: bool
    """Tools are described only where there is a system message."""


_FOUND: Final[WeakKeyDictionary[ChatTemplate, Traits | RequestError]] = WeakKeyDictionary()


def find_traits(template: ChatTemplate) -> Traits:
    """Try a template out, once. What raises in it is not supported.

    Raises:
        RequestError: invalid_request: it came to a limit even on small conversations. It is not tried again.
    """
    if (found := _FOUND.get(template)) is None:
        try:
            found = _try(template)
        except RequestError as error:
            found = error
        _FOUND[template] = found
    if isinstance(found, RequestError):
        raise found.with_traceback(None)
    return found


def _try(template: ChatTemplate) -> Traits:
    shape = Shape(parts=not _writes(template, Shape(), [_ASKED], USER))
    system = Turn("system", SYSTEM)
    late = [system, _ASKED, Turn("assistant", ANSWER), Turn("system", THOUGHT), Turn("user", LATER)]
    described = _writes(template, shape, [_ASKED], FUNCTION, tools=True)
    tools_need_system = not described and _writes(template, shape, [system, _ASKED], FUNCTION, tools=True)
    with_calls = _find_calls(template, shape) if described or tools_need_system else None
    return Traits(
        shape=with_calls or shape,
        system=_writes(template, shape, [system, _ASKED], SYSTEM, USER),
        late_system=_writes(template, shape, late, SYSTEM, USER, ANSWER, THOUGHT, LATER),
        neighbours=_writes(template, shape, [_ASKED, Turn("user", LATER)], USER, LATER),
        tools=with_calls is not None,
        tools_need_system=tools_need_system,
    )


def _find_calls(template: ChatTemplate, shape: Shape) -> Shape | None:
    """The first of the shapes, the commonest first, in which the template writes a call and its result."""
    called = Turn("assistant", "", calls=(_CALL,))
    for no_content, text_arguments, short_ids in itertools.product((False, True), repeat=3):
        candidate = replace(shape, no_content=no_content, text_arguments=text_arguments, short_ids=short_ids)
        if _writes(template, candidate, [_ASKED, called, _ANSWERED], FUNCTION, VALUE, RESULT, tools=True):
            return _find_limits(template, candidate)
    return None


def _find_limits(template: ChatTemplate, shape: Shape) -> Shape:
    """Templates refuse or leave out a second call, or the text beside a call."""
    both = Turn("assistant", "", calls=(_CALL, _SECOND))
    results = [_ANSWERED, Turn("tool", ANSWER, call_id=_SECOND.id, name=_SECOND.name)]
    if not _writes(template, shape, [_ASKED, both, *results], VALUE, _SECOND.name, ANSWER, tools=True):
        shape = replace(shape, single_calls=True)
    full = Turn("assistant", ANSWER, reasoning=THOUGHT, calls=(_CALL,))
    turns = [_ASKED, full, _ANSWERED, Turn("assistant", LATER)]
    for candidate in (shape, replace(shape, bare_calls=True)):
        if _writes(template, candidate, turns, ANSWER, VALUE, LATER, tools=True):
            return candidate
    return shape


def _writes(template: ChatTemplate, shape: Shape, turns: Sequence[Turn], *words: str, tools: bool = False) -> bool:
    text = template.attempt(shape.messages(turns), [_TOOL] if tools else None)
    return all(word in text for word in words)


def takes_part(template: ChatTemplate, kind: Kind, placeholder: str) -> bool:
    """Whether it writes an image, or a sound, where it stands in a message, as its placeholder."""
    content = [{"type": _PART_TYPES[kind]}, {"type": "text", "text": USER}]
    _, found, after = template.attempt([{"role": "user", "content": content}]).partition(placeholder)
    return bool(found) and placeholder not in after and USER in after


def _parts(text: str) -> list[dict[str, str]]:
    """A text as a list of parts, with the images and sounds that it has marks for."""
    types = {MARKS[kind]: name for kind, name in _PART_TYPES.items()}
    pieces = _MARK.split(text)
    parts = [{"type": types[piece]} if piece in types else {"type": "text", "text": piece} for piece in pieces]
    return [part for part in parts if part.get("text") != "" or len(parts) == 1]


def _one_by_one(turns: Sequence[Turn]) -> list[Turn]:
    """Each call in a turn of its own, with its result behind it."""
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
