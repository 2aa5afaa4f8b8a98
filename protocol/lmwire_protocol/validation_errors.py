"""Error sentences for invalid commands: the path of the field, its valid values, and the value that it has.

The valid values come from the Structs. This module is imported only to report an error: its imports take some
milliseconds, which would delay the start of a process.
"""

import difflib
import re
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any, get_type_hints

import msgspec
from msgspec import inspect

from .commands import Command
from .errors import RequestError
from .json_value import JsonValue
from .limits import MAX_INT

_WHERE = re.compile(r"(.*) - at `(?P<key>key` in `)?\$\.?(?P<path>.*?)(?P<entry>\[\.\.\.\])?`$", re.DOTALL)
_NAMED = re.compile(r"Object (?P<what>contains unknown|missing required) field `(?P<name>.*)`$", re.DOTALL)
_CHECKED = re.compile(r"(?P<field>[\w.\[\]]+): (?P<rest>.*)$", re.DOTALL)
_SHOWN_CHARACTERS = 40


def validation_error(error: msgspec.ValidationError, command: type[Command], fields: dict[str, Any]) -> RequestError:
    """Return msgspec's error as a sentence that starts with the field and describes its valid values.

    Args:
        error: msgspec's error.
        command: The Struct of the command.
        fields: The fields of the line.
    """
    text, path = str(error), ""
    where = _WHERE.match(text)
    if where:
        text, path = where[1], where["path"]
    if where and (where["key"] or where["entry"]):
        field, text = _entry(path, bool(where["key"]), command, fields)
    elif match := _NAMED.match(text):
        field = f"{path}.{match['name']}" if path else match["name"]
        if match["what"] == "missing required":
            text = f"is required; it is {_words(_kinds(command, field))}"
        else:
            text = f"unknown field{_known(match['name'], _kinds(command, path))}"
    elif match := _CHECKED.match(text):
        field, text = f"{path}.{match['field']}" if path else match["field"], match["rest"]
    else:
        field = path
        text = f"must be {_words(_kinds(command, path))}, not {_shown(_at(fields, path))}"
    return RequestError("invalid_request", f"`{field}`: {text}", field=field)


def nearest(name: str, names: Iterable[str]) -> str:
    """Return a hint at the most similar of `names`, or an empty string if none is similar."""
    near = difflib.get_close_matches(name[:64], list(names), n=1)
    return f"; did you mean `{near[0]}`?" if near else ""


def _entry(name: str, named_wrong: bool, command: type[Command], fields: dict[str, Any]) -> tuple[str, str]:
    """Return the path and the problem of the first invalid entry in an object with free names.

    msgspec does not report which entry it is.

    Args:
        name: The field of the command that holds the object.
        named_wrong: True if the entry's name is invalid, not its value.
        command: The Struct of the command.
        fields: The fields of the line.
    """
    hint = get_type_hints(command, include_extras=True)[name]
    (kind,) = _kinds(command, name)
    if kind.max_length is not None and len(fields[name]) > kind.max_length:
        return name, f"must be {_words([kind])}, not {_shown(fields[name])}"
    for key, value in fields[name].items():
        try:
            msgspec.convert({key: value}, hint, str_keys=True)
        except msgspec.ValidationError:
            if named_wrong:
                return f"{name}.{key}", f"its name must be {_phrase(kind.key_type)}"
            return f"{name}.{key}", f"must be {_phrase(kind.value_type)}, not {_shown(value)}"
    raise AssertionError(f"no entry of {name} is at fault")


def _known(name: str, kinds: list[Any]) -> str:
    """Return a hint at the known fields beside an unknown one: the most similar name, or all of a few."""
    names = [field.encode_name for kind in kinds for field in getattr(kind, "fields", ())]
    return nearest(name, names) or (f"; there are {', '.join(names)}" if 0 < len(names) < 10 else "")


# The types and values at a path.


@cache
def _root(command: type[Command]) -> Any:
    return inspect.type_info(command)


def _kinds(command: type[Command], path: str) -> list[Any]:
    """Return the types that the field at a path may have."""
    kinds = [_root(command)]
    for step in _steps(path):
        kinds = [part for kind in kinds for inner in _inside(kind, step) for part in _parts(inner)]
    return kinds


def _inside(kind: Any, step: str) -> Iterator[Any]:
    if isinstance(kind, inspect.StructType):
        if step == kind.tag_field:
            yield inspect.LiteralType(values=(str(kind.tag),))
        yield from (field.type for field in kind.fields if field.encode_name == step)
    elif isinstance(kind, inspect.ListType) and step.isdigit():
        yield kind.item_type
    elif isinstance(kind, inspect.TupleType) and step.isdigit():
        yield kind.item_types[int(step)]


def _parts(kind: Any) -> list[Any]:
    """Return a type's alternatives, without null, which stands for an absent field."""
    if isinstance(kind, inspect.UnionType):
        return [part for inner in kind.types for part in _parts(inner)]
    return [] if isinstance(kind, inspect.NoneType) else [kind]


def _at(fields: Any, path: str) -> Any:
    for step in _steps(path):
        fields = fields[int(step) if isinstance(fields, list) else step]
    return fields


def _steps(path: str) -> list[str]:
    return re.findall(r"[^.\[\]]+", path)


# Types and values as words.


def _words(kinds: list[Any]) -> str:
    """Return the valid values as a phrase that follows `must be`."""
    literals = [_json(value) for kind in kinds if isinstance(kind, inspect.LiteralType) for value in kind.values]
    tags = [str(kind.tag) for kind in kinds if isinstance(kind, inspect.StructType) and kind.tag_field == "type"]
    others = [_phrase(kind) for kind in kinds if not isinstance(kind, inspect.LiteralType)]
    if tags:
        others = [words for words in others if words != "an object"] + [f"an object of the type {_either(tags)}"]
    return _either([*literals, *dict.fromkeys(others)])


def _phrase(kind: inspect.Type) -> str:
    match kind:
        case inspect.Metadata(inspect.StrType() as inner, extra_json_schema={"maxLength": int(limit)}):
            return f"a string of {_range(inner.min_length or 0, limit)} bytes"
        case inspect.Metadata():
            return _phrase(kind.type)
        case inspect.BoolType():
            return "true or false"
        case inspect.IntType():
            return f"an integer from {_range(kind.ge, kind.le)}"
        case inspect.FloatType(gt=None):
            return f"a number from {_range(kind.ge, kind.le)}"
        case inspect.FloatType():
            return f"a number above {_number(kind.gt)}, up to {_number(kind.le)}"
        case inspect.StrType():
            return f"a string{_sized(kind.min_length, kind.max_length, 'characters')}"
        case inspect.ListType():
            return f"a list{_sized(kind.min_length, kind.max_length, 'items')}"
        case inspect.TupleType():
            return f"a list of {len(kind.item_types)} items"
        case inspect.DictType():
            return f"an object{_sized(kind.min_length, kind.max_length, 'members')}"
        case _:
            return "an object"


def _sized(low: int | None, high: int | None, unit: str) -> str:
    if low is None and high is None:
        return ""
    return f" of {_range(low or 0, high)} {unit}"


def _range(low: float | None, high: float | None) -> str:
    return f"{_number(low)} or more" if high is None else f"{_number(low)} to {_number(high)}"


def _number(value: float | None) -> str:
    return "2^53-1" if value == MAX_INT else f"{value:,g}" if isinstance(value, float) else f"{value:,}"


def _either(words: list[str]) -> str:
    return " or ".join(filter(None, [", ".join(words[:-1]), words[-1]])) if words else "absent"


def _shown(value: JsonValue) -> str:
    """Return a value for a sentence: the value itself if it is short, else its type and size."""
    if isinstance(value, dict):
        return f"an object of {len(value)}"
    if isinstance(value, list):
        return f"a list of {len(value)}"
    text = _json(value)
    return text if len(text) <= _SHOWN_CHARACTERS or not isinstance(value, str) else f"{len(value.encode())} bytes"


def _json(value: JsonValue) -> str:
    return msgspec.json.encode(value).decode()
