"""The `response_template` of a tokenizer's settings, with which transformers parses answers.

It has literal texts and regular expressions, which come with the model and may take any time to match. None of them is
run: those that are texts with groups are turned into text, and everything else is named as unread. The texts around
calls are proved as a chat template's are, by reading back a call that is written with them.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from ..output_parsing import CONTENT
from ..tool_parsers import WrittenCall, call_text

MAX_CHARACTERS: Final = 65_536
"""Maximum length of a response template, as JSON."""
_MAX_PATTERN: Final = 512
_MAX_DEPTH: Final = 8
_REASONING: Final = ("reasoning_content", "reasoning", "thinking", "thought")
_CALLS: Final = "tool_calls"
_REPEATS: Final = "*+?"
_SPACES: Final = {"n": "\n", "t": "\t"}


class _UnreadError(Exception):
    """A part of the template has another shape than those known here."""


class ResponseTemplate(Struct, frozen=True):
    """Description of answers by a response template."""

    reasoning: tuple[str, str] | None = None
    """The markers around reasoning."""
    calls: Mapping[str, Any] | None = None
    """The field for calls, whose samples can be written; None without."""
    unread: tuple[str, ...] = ()
    """The parts that are not read."""

    def write(self, calls: Sequence[WrittenCall]) -> str:
        """Return calls as the template describes them; empty if it describes none, or fewer in a turn.

        Args:
            calls: The calls, whose arguments are texts.
        """
        try:
            return _write_calls(self.calls, calls) if self.calls else ""
        except _UnreadError:
            return ""


def read_response_template(given: Any) -> ResponseTemplate | None:
    """Return what a response template says; None if there is none.

    Args:
        given: The value of the settings, whatever it is.
    """
    if given is None:
        return None
    fields = given.get("fields") if isinstance(given, Mapping) else None
    if not isinstance(fields, Mapping) or given.get("version", 1) != 1 or _is_long(given):
        return ResponseTemplate(unread=("all",))
    reasoning = calls = None
    unread: list[str] = []
    for name, value in fields.items():
        try:
            if name in _REASONING:
                reasoning = _anchor(value, "open").rstrip(), _anchor(value, "close").strip()
                if not all(reasoning):
                    raise _UnreadError
            elif name == _CALLS:
                _write_calls(value, [WrittenCall("name", {"key": "value"})])
                calls = value
            elif name != CONTENT or "open" in value or "open_pattern" in value:
                raise _UnreadError
        except (_UnreadError, AttributeError, TypeError):
            unread.append(str(name)[:64])
            reasoning = None if name in _REASONING else reasoning
    return ResponseTemplate(reasoning, calls, tuple(unread[:8]))


def _is_long(given: Any) -> bool:
    try:
        return len(json.dumps(given)) > MAX_CHARACTERS
    except (TypeError, ValueError, RecursionError):
        return True


def _write_calls(field: Mapping[str, Any], calls: Sequence[WrittenCall]) -> str:
    is_list = field.get("transform_each") is True or field.get("content") == "python-call-list"
    if len(calls) > 1 and not is_list and not field.get("repeats"):
        raise _UnreadError
    if not is_list:
        return "".join(_around(field, call.name, _write_body(field, call)) for call in calls)
    if field.get("content") == "python-call-list":
        body = ", ".join(call_text(call.name, call.arguments) for call in calls)
    else:
        body = ", ".join(json.dumps(_object(field.get("transform"), call, root=True)) for call in calls)
    return _around(field, None, f"[{body}]")


def _around(field: Mapping[str, Any], name: str | None, body: str) -> str:
    groups = {} if name is None else {"name": name}
    opening = _anchor(field, "open", groups)
    if not opening.strip():
        raise _UnreadError
    return opening + body + (_anchor(field, "close", groups) if field.keys() & {"close", "close_pattern"} else "")


def _write_body(field: Mapping[str, Any], call: WrittenCall) -> str:
    """Return the content of a call's region."""
    arguments = field.get("content_args") or {}
    if field.get("content") == "xml-inline":
        if not _names_captured(field.get("transform")):
            raise _UnreadError
        tag = arguments.get("tag_pattern")
        return "".join(_text_of(tag, {"key": key, "value": str(value)}) for key, value in call.arguments.items())
    if field.get("content") != "json":
        raise _UnreadError
    written = call.arguments if _names_captured(field.get("transform")) else _object(field.get("transform"), call)
    return _write_json(written, arguments)


def _write_json(value: Any, arguments: Mapping[str, Any]) -> str:
    """Return a value in the dialect of JSON that the content's arguments describe."""
    quotes = arguments.get("string_delims")
    if not quotes and not arguments.get("unquoted_keys"):
        return json.dumps(value, ensure_ascii=False)
    (before, after) = quotes[0] if quotes else ('"', '"')
    key = (lambda name: name) if arguments.get("unquoted_keys") else json.dumps
    if isinstance(value, Mapping):
        items = (f"{key(name)}:{_write_json(item, arguments)}" for name, item in value.items())
        return f"{{{','.join(items)}}}"
    return f"{before}{value}{after}"


def _names_captured(transform: Any) -> bool:
    """Return whether the name comes from the opening, and the arguments are the content."""
    function = transform.get("function") if isinstance(transform, Mapping) else None
    return isinstance(function, Mapping) and (function.get("name"), function.get("arguments")) == (
        "{name}",
        "{content}",
    )


def _object(transform: Any, call: WrittenCall, *, root: bool = False) -> dict[str, Any]:
    """Return the object that a transform makes a call of.

    Args:
        transform: The transform.
        call: The call.
        root: The placeholders name keys of the object, and not `content`.
    """
    if transform is None and root:
        return {"name": call.name, "arguments": call.arguments}
    function = transform.get("function") if isinstance(transform, Mapping) else None
    if function == "{content}" and not root:
        return {"name": call.name, "arguments": call.arguments}
    if not isinstance(function, Mapping):
        raise _UnreadError
    found: dict[str, Any] = {}
    for part, value in (("name", call.name), ("arguments", call.arguments)):
        place = function.get(part)
        if not isinstance(place, str) or not place.startswith("{") or not place.endswith("}"):
            raise _UnreadError
        path = place[1:-1].split(".")
        if not root and path.pop(0) != "content":
            raise _UnreadError
        if not 1 <= len(path) <= _MAX_DEPTH:
            raise _UnreadError
        inner = found
        for key in path[:-1]:
            inner = inner.setdefault(key, {})
        inner[path[-1]] = value
    return found


def _anchor(field: Mapping[str, Any], side: str, groups: Mapping[str, str] = {}) -> str:
    """Return a text that opens or closes a field: its only one, the first of a list, or that of a pattern."""
    text = field.get(side)
    if isinstance(text, list) and text:
        text = text[0]
    if text is None:
        return _text_of(field.get(f"{side}_pattern"), groups)
    if not isinstance(text, str) or len(text) > _MAX_PATTERN:
        raise _UnreadError
    return text


# The shortest usual text of a regular expression: characters, groups by name, white space, choices and options.


def _text_of(pattern: Any, groups: Mapping[str, str]) -> str:
    """Return a text that a pattern matches, with given texts for its groups.

    Args:
        pattern: The pattern, whatever the settings have.
        groups: Texts of the groups by name.

    Raises:
        _UnreadError: The pattern has other parts, or is too long.
    """
    if not isinstance(pattern, str) or len(pattern) > _MAX_PATTERN:
        raise _UnreadError
    text, end = _choices(pattern, 0, groups, 0)
    if end != len(pattern):
        raise _UnreadError
    return text


def _choices(pattern: str, at: int, groups: Mapping[str, str], depth: int) -> tuple[str, int]:
    """Return the text of the first of some choices, and the end of all of them."""
    first: str | None = None
    while True:
        text, at = _sequence(pattern, at, groups, depth)
        first = text if first is None else first
        if pattern[at : at + 1] != "|":
            return first, at
        at += 1


def _sequence(pattern: str, at: int, groups: Mapping[str, str], depth: int) -> tuple[str, int]:
    text = ""
    while at < len(pattern) and pattern[at] not in "|)":
        piece, at = _piece(pattern, at, groups, depth)
        if pattern[at : at + 1] in ("*", "?"):
            piece = ""
        if at < len(pattern) and pattern[at] in _REPEATS:
            at += 2 if pattern[at + 1 : at + 2] in ("?", "+") else 1
        text += piece
    return text, at


def _piece(pattern: str, at: int, groups: Mapping[str, str], depth: int) -> tuple[str, int]:
    """Return the text of a character, an escape or a group, and its end."""
    mark, following = pattern[at], pattern[at + 1 : at + 2]
    if mark == "\\":
        if following == "s":
            return " ", at + 2
        if following in _SPACES:
            return _SPACES[following], at + 2
        if not following or following.isalnum():
            raise _UnreadError
        return following, at + 2
    if pattern.startswith("(?P<", at):
        name, _, _ = pattern[at + 4 : at + 68].partition(">")
        if name not in groups:
            raise _UnreadError
        return groups[name], _group_end(pattern, at)
    if pattern.startswith("(?:", at) and depth < _MAX_DEPTH:
        text, end = _choices(pattern, at + 3, groups, depth + 1)
        if pattern[end : end + 1] != ")":
            raise _UnreadError
        return text, end + 1
    if mark == "$":  # the end of the answer
        return "", at + 1
    if mark in ".^*+?{[(":
        raise _UnreadError
    return mark, at + 1


def _group_end(pattern: str, at: int) -> int:
    """Return the end of the group that starts at a place."""
    depth, in_class = 0, False
    while at < len(pattern):
        mark = pattern[at]
        if mark == "\\":
            at += 1
        elif in_class:
            in_class = mark != "]"
        elif mark in "[()":
            in_class = mark == "["
            depth += {"(": 1, ")": -1, "[": 0}[mark]
            if depth == 0:
                return at + 1
        at += 1
    raise _UnreadError
