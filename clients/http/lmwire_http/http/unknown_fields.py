"""Unknown fields of request bodies: aliases are renamed, others are removed and reported. So are tools not served here.

An optional field with null is absent, whatever its type is: typed clients write every field that they know.

Only a body that failed to decode because of such a field comes here, so known fields cost nothing.
"""

import logging
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any, Final, TypeAlias, cast

import msgspec
from msgspec import inspect

from ..errors import ApiError, invalid_field, too_many
from ..limits import UNKNOWN_FIELDS
from ..telemetry.logs import log_facts
from .keep_alive import IDLE_FIELDS, idle_limit

Alias: TypeAlias = Callable[[Any], Mapping[str, Any]]
"""Returns the fields that an alias with this value stands for. Raises ValueError if the value is invalid."""

IGNORED_FIELDS_HEADER: Final = "x-lmwire-ignored-fields"
_MAX_REPORTED: Final = 16
"""Most ignored fields in a response header."""
_MAX_LOGGED: Final = 256
"""Most ignored fields that a server logs, so that clients cannot fill the log or the memory."""
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,63}", re.ASCII)
_UNSHOWN_NAME: Final = "(unusual name)"
_HEAD: Final = re.compile(r"\w+", re.ASCII)
_STEP: Final = re.compile(r"\[[^\]]*\]|[^.\[]+")
_INDEX: Final = re.compile(r"\[\d+\]", re.ASCII)

_NEVER_IGNORED: Final = {
    name: remedy
    for names, remedy in (
        (
            "response_format format output_config json_schema structured_outputs grammar guided_json guided_regex "
            "guided_choice guided_grammar regex ebnf regex_pattern grammar_string",
            "choose the format with this API's own field",
        ),
        (
            "tools tool_choice functions function_call mcp_servers web_search_options",
            "offer tools with this API's own fields",
        ),
        (
            "stop stop_sequences stop_sequence stop_token_ids bad_words allowed_token_ids allowed_tokens max_tokens "
            "max_completion_tokens max_output_tokens max_new_tokens max_length n_predict",
            "end the answer with this API's own fields",
        ),
        (
            "dry_multiplier banned_strings mirostat mirostat_mode smoothing_factor dynatemp_range",
            "use repetition_penalty, frequency_penalty, xtc_probability or logit_bias, or turn it off",
        ),
        (
            "n best_of use_beam_search echo suffix logprobs top_logprobs prompt_logprobs translate",
            "leave it out, or use an API that has it",
        ),
        (
            "system instructions prompt messages input prompt_embeds images documents input_type instruct prompt_name "
            "previous_response_id conversation",
            "send it in this API's own fields",
        ),
    )
    for name in names.split()
}
"""Fields of a body without which the answer would be a different one, and what to do instead."""
_COUNTS_OF_ANSWERS: Final = ("n", "best_of")
_NEVER_IGNORED_WITHIN: Final = {
    "images": "send images as parts of the content",
    "tool_calls": "only an assistant's message has calls",
    "prefix": "start an answer with the field `prefix` of the request",
    "partial": "start an answer with the field `prefix` of the request",
}
"""The same for fields of messages and other parts of a body."""
CHECKED_WHOLE: Final = frozenset({"response_format", "format", "tool_choice", "logit_bias"})
"""Fields in which every part changes the answer: nothing in them is ignored."""


class UnknownFields:
    """The unknown fields of one request.

    Args:
        aliases: What each alias in the body stands for.
        strict: Whether unknown fields are refused. Aliases are known.
    """

    def __init__(self, aliases: Mapping[str, Alias], *, strict: bool = False) -> None:
        self._aliases = aliases
        self.are_refused = strict
        """True if the request is refused because of them."""
        self._alias_of: dict[str, str] = {}
        """The client's alias of each field that an alias has set."""
        self._renamed: set[str] = set()
        """The fields whose alias has the same value."""
        self.ignored: dict[str, None] = {}
        """Paths of ignored fields and parts, without indices, in the order of the body. There may be more."""
        self._has_more = False
        self.idle_s: float | None = None
        """Time without a request after which the model must be unloaded, in seconds; None if the body has none."""

    def header(self) -> dict[str, str]:
        """Return the response header that lists the ignored fields; empty if there are none."""
        if not self.ignored:
            return {}
        return {IGNORED_FIELDS_HEADER: ", ".join([*self.ignored, *(["..."] if self._has_more else [])])}

    def resolve(self, value: Any, type: Any) -> Any:
        """Return a body, or a part of one, with aliases renamed, and without ignored fields and optional nulls.

        Args:
            value: The data, as decoded JSON.
            type: The type that it must have.

        Raises:
            ApiError: An unknown field must not be ignored, or an alias is invalid.
        """
        return self._resolve(value, _type_info(type), "", "")

    def ignore(self, parent: str, name: str) -> None:
        """Add a field that has turned out to be unknown after the body was decoded.

        Args:
            parent: The path of the object that contains it, by the API's own names.
            name: The field's name.
        """
        self._report(self._client_path(parent), name)

    def leave_out(self, path: str, type: str) -> None:
        """Add a part of the body that is known but not served here, such as a tool that another service runs.

        Args:
            path: The part's path in the body, such as `tools[2]`.
            type: The part's type, such as `web_search`. The log and the header show it after the path.

        Raises:
            ApiError: The server refuses such parts.
        """
        if self.are_refused:
            problem = (
                f"the type {_shown(type)} is not served here; leave this out, or start the server without --strict"
            )
            raise invalid_field(f"{path}: {problem}", path)
        self._report(_INDEX.sub("[]", path), type)

    def restore_alias(self, error: ApiError) -> None:
        """Name the client's own field in an error about a field that an alias has set."""
        if error.param:
            path = self._client_path(error.param)
            error.message = error.message.replace(error.param, path, 1)
            error.param = path

    def _client_path(self, path: str) -> str:
        """Return a path in which the client's alias takes the place of the field that it has set."""
        head = _HEAD.match(path)
        if head is None or (alias := self._alias_of.get(head[0])) is None:
            return path
        return alias + path[head.end() :] if head[0] in self._renamed else alias

    def _resolve(self, value: Any, expected: inspect.Type, path: str, shown: str, *, is_whole: bool = False) -> Any:
        """Return the value without unknown fields, and without nulls of optional ones.

        Args:
            value: The data.
            expected: Its type.
            path: The path in the body, for errors.
            shown: The path without indices, for the log and the header.
            is_whole: Whether unknown fields stay, for the decoder's error to name them.
        """
        if isinstance(value, list):
            items = next((each for each in _members(expected) if isinstance(each, inspect.ListType)), None)
            if items is None:
                return cast(Any, value)
            if items.max_length is not None and len(cast(list[Any], value)) > items.max_length:
                raise too_many(path, items.max_length)
            return [
                self._resolve(item, items.item_type, f"{path}[{index}]", f"{shown}[]", is_whole=is_whole)
                for index, item in enumerate(cast(list[Any], value))
            ]
        if isinstance(value, dict):
            body = cast(dict[str, Any], value)
            struct = _struct_of(body, expected)
            return self._resolve_struct(body, struct, path, shown, is_whole=is_whole) if struct else body
        return value

    def _resolve_struct(
        self, value: dict[str, Any], struct: inspect.StructType, path: str, shown: str, *, is_whole: bool
    ) -> Any:
        if len(value) > UNKNOWN_FIELDS:
            raise too_many(path, UNKNOWN_FIELDS, "fields")
        fields = {field.encode_name: field.type for field in struct.fields}
        optional = {f.encode_name for f in struct.fields if not f.required and not _takes_null(f.type)}
        known: dict[str, Any] = {}
        for name, item in value.items():
            if item is None and name in optional:
                continue
            if name in fields:
                place, place_shown = _join(path, name), _join(shown, name)
                all_of_it = is_whole or name in CHECKED_WHOLE
                known[name] = self._resolve(item, fields[name], place, place_shown, is_whole=all_of_it)
            elif name == struct.tag_field or not struct.forbid_unknown_fields:
                known[name] = item
        for name, item in value.items():
            if name not in fields and name not in known and item is not None:
                if not path and name in self._aliases:
                    self._rename(name, item, known)
                elif not path and name in IDLE_FIELDS:
                    self.idle_s = idle_limit(item, name)
                elif self.are_refused or is_whole:
                    known[name] = item  # the decoder's error names it
                else:
                    self._ignore(name, item, path, shown)
        return known

    def _rename(self, alias: str, value: Any, known: dict[str, Any]) -> None:
        try:
            meant = self._aliases[alias](value)
        except ValueError as error:
            raise invalid_field(f"{alias}: {error}", alias) from error
        for name, item in meant.items():
            if known.get(name) is not None and not _is_same(known[name], item):
                raise invalid_field(f"{alias}: says the same as `{name}`; give one of them", alias)
            known[name] = item
            self._alias_of[name] = alias
            if item is value:
                self._renamed.add(name)

    def _ignore(self, name: str, value: Any, path: str, shown: str) -> None:
        remedy = (_NEVER_IGNORED_WITHIN if path else _NEVER_IGNORED).get(name)
        if remedy and not _is_default(name, value):
            field = _join(path, name)
            problem = "is not supported here, and the answer would be a different one without it"
            raise invalid_field(f"{field}: {problem}; {remedy}", field)
        self._report(shown, name)

    def _report(self, shown: str, name: str) -> None:
        field = _join(shown, _shown(name))
        if field in self.ignored:
            return
        if len(self.ignored) < _MAX_REPORTED:
            self.ignored[field] = None
        else:
            self._has_more = True


class IgnoredFieldLog:
    """The log of ignored fields. It names each field once."""

    def __init__(self) -> None:
        self._logged: set[str] = set()

    def add(self, unknown: UnknownFields) -> None:
        """Log the ignored fields of a request that are new."""
        for field in unknown.ignored:
            if field in self._logged or len(self._logged) >= _MAX_LOGGED:
                continue
            self._logged.add(field)
            log_facts(
                logging.WARNING,
                "requests have a field or a part that is not served; it is ignored without --strict",
                {"field": field},
            )
            if len(self._logged) == _MAX_LOGGED:
                log_facts(
                    logging.WARNING,
                    "further fields and parts that are not served are not logged",
                    {"logged": _MAX_LOGGED},
                )


def renamed_field(alias: Alias) -> str | None:
    """Return the field that has an alias's own value; None for an alias that stands for other values."""
    value = object()
    try:
        return next((name for name, item in alias(value).items() if item is value), None)
    except ValueError:
        return None


def names_at(type: Any, path: str) -> list[str]:
    """Return the words that a field takes, such as the roles of a message; empty for a field of another type.

    Args:
        type: The type of the body.
        path: The path of the field.
    """
    places = _places_at(type, path)
    literals = [member for place in places for member in _members(place) if isinstance(member, inspect.LiteralType)]
    return list(dict.fromkeys(str(value) for literal in literals for value in literal.values))


def fields_at(type: Any, path: str) -> list[str]:
    """Return the names of the fields that an object takes; empty if there are several kinds of it, or none.

    Args:
        type: The type of the body.
        path: The path of the object.
    """
    members = [member for place in _places_at(type, path) for member in _members(place)]
    structs = [member for member in members if isinstance(member, inspect.StructType)]
    return [field.encode_name for field in structs[0].fields] if len(structs) == 1 else []


def _places_at(type: Any, path: str) -> list[inspect.Type]:
    """Return the types that the value at a path may have."""
    places = [_type_info(type)]
    for step in _STEP.findall(path):
        places = [each for place in places for member in _members(place) for each in _within(member, step)]
    return places


def _within(place: inspect.Type, step: str) -> list[inspect.Type]:
    """Return the types of a member of a list or an object, by its index or its name."""
    match place:
        case inspect.ListType() if step.startswith("["):
            return [place.item_type]
        case inspect.DictType() if step.startswith("["):
            return [place.value_type]
        case inspect.StructType() if step == place.tag_field:
            return [inspect.LiteralType((cast(str, place.tag),))]
        case inspect.StructType():
            return [field.type for field in place.fields if field.encode_name == step]
        case _:
            return []


def is_resolvable(error: msgspec.ValidationError) -> bool:
    """Return whether a body failed to decode because of an unknown field, or of a null that may be an absent field."""
    problem = str(error)
    return "contains unknown field" in problem or "got `null`" in problem


def _is_same(value: Any, other: Any) -> bool:
    """Return whether two JSON values are equal. In Python, false equals 0 and true equals 1."""
    return value == other and isinstance(value, bool) == isinstance(other, bool)


def _is_default(name: str, value: Any) -> bool:
    """Return whether a field says what holds without it."""
    return value in (False, "", [], {}) or (name in _COUNTS_OF_ANSWERS and type(value) is int and value == 1)


@cache
def _type_info(type: Any) -> inspect.Type:
    return inspect.type_info(type)


def _members(expected: inspect.Type) -> Iterator[inspect.Type]:
    if isinstance(expected, inspect.Metadata):
        yield from _members(expected.type)
    elif isinstance(expected, inspect.UnionType):
        for member in expected.types:
            yield from _members(member)
    else:
        yield expected


def _takes_null(expected: inspect.Type) -> bool:
    return any(isinstance(member, inspect.NoneType | inspect.AnyType) for member in _members(expected))


def _struct_of(value: dict[str, Any], expected: inspect.Type) -> inspect.StructType | None:
    """Return the Struct that an object must be: in a union, the one with the object's tag."""
    for member in _members(expected):
        if isinstance(member, inspect.StructType) and (
            member.tag_field is None or value.get(member.tag_field) == member.tag
        ):
            return member
    return None


def _shown(name: str) -> str:
    return name if _NAME.fullmatch(name) else _UNSHOWN_NAME


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
