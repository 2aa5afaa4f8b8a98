"""Paths of the fields of commands, and the values of a line at a path."""

from collections.abc import Iterator
from typing import Any

from msgspec import inspect

Path = tuple[str, ...]
"""Names of fields, and `*` for any item of a list or any entry of an object with free names."""


def paths(kind: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Yield every path below a type with the type found there, once for each type that it may have."""
    if isinstance(kind, inspect.UnionType):
        for part in kind.types:
            yield from paths(part, path)
        return
    yield path, kind
    if isinstance(kind, inspect.StructType):
        if kind.tag_field == "type":
            yield (*path, "type"), inspect.LiteralType(values=(str(kind.tag),))
        for field in kind.fields:
            yield from paths(field.type, (*path, field.encode_name))
    elif isinstance(kind, inspect.ListType):
        yield from paths(kind.item_type, (*path, "*"))
    elif isinstance(kind, inspect.TupleType):
        for item in kind.item_types:
            yield from paths(item, (*path, "*"))
    elif isinstance(kind, inspect.DictType) and not isinstance(kind.value_type, inspect.AnyType):
        yield from paths(kind.value_type, (*path, "*"))


def places(value: Any, path: Path) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Yield each place in a value that matches a path, as names and indices, with the value at that place."""
    if not path:
        yield (), value
        return
    step, *rest = path
    if step == "*" and isinstance(value, list):
        found = list(enumerate(value))
    elif step == "*" and isinstance(value, dict):
        found = list(value.items())
    else:
        found = [(step, value[step])] if isinstance(value, dict) and step in value else []
    for name, item in found:
        for inner, value_there in places(item, tuple(rest)):
            yield (name, *inner), value_there


def written(place: tuple[Any, ...]) -> str:
    """Return a place as errors write it."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in place).removeprefix(".")
