"""The revision that added each command, event, field and value: what `meta.json` has as `since`.

Revisions are names for documents and generated files; none is on the wire. A host needs `features` instead: a worker
that serves a newer part of a command lists one of its features in the reply to `hello`.
"""

import json
from collections.abc import Iterator
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec
from msgspec.inspect import (
    AnyType,
    DictType,
    ListType,
    LiteralType,
    Metadata,
    StructType,
    TupleType,
    Type,
    UnionType,
    type_info,
)

from . import events
from .commands import Command
from .features import DONE_CMD, FEATURES

Json: TypeAlias = dict[str, Any]

FIRST: Final = "1.0"
CURRENT: Final = "1.1"

_NEWER_IN_EVENTS: Final = frozenset(
    {
        "tool_call",
        "embedding",
        "segment",
        "audio",
        "progress.stage.transcribe",
        "token.choice",
        "token.channel",
        "token.call",
        "token.logprobs",
        "token.prompt_logprobs",
        "TokenizeDone",
        "EmbedDone",
        "TranscribeDone",
        "SpeakDone",
        "CacheDone",
        "ModelDone.adapter_path",
        "ModelDone.chat_template_name",
        "ModelDone.tool_format",
        "ModelDone.tool_format_note",
        "ModelDone.batch_size",
        "ModelDone.sampling_defaults",
        "ModelDone.reasoning_efforts",
        "HelloDone.ranks",
        "ModelDone.ranks",
        "ResultDone.finish_reason.tool_calls",
        "ResultDone.finish_reason.timeout",
        "ResultDone.finish_reason.capacity",
        "ResultDone.usage.reasoning_tokens",
        "ResultDone.usage.draft_accepted",
        "ResultDone.choices",
        "ResultDone.cache_miss",
        "StatsDone.cache",
    }
)
"""Events, forms of `done`, their fields and values that 1.0 did not have. A part of one that is listed is newer too."""


_FORMS: Final = ("string", "absent")
"""Forms of a field besides its usual one, as `features` names them."""
_CONDITIONS: Final[dict[str, Json]] = {"messages[].tool_call_id.absent": {"role": "tool"}}
"""Members that the object around a field has wherever its form needs the feature, by path and form."""


class _Part(NamedTuple):
    """A field, or one of its values or forms.

    Args:
        path: The field, such as `messages[].role`.
        value: The value or form; None for the field itself.
        newer: What makes it newer than 1.0: names of `_Parts.listed`. Empty for a part of 1.0.
        group: Where the entry of the field lists it: `values` or `forms`.
    """

    path: str
    value: str | None
    newer: tuple[str, ...]
    group: str = "values"


def of_command(command: type[Command]) -> Json:
    """Return `since` and `fields` of a command; newer parts have `features`."""
    return _described(_Parts(command.name, frozenset(FEATURES)), command, with_features=True)


def of_event(event: type[events.Event], name: str) -> Json:
    """Return `since` and `fields` of an event, or of a form of `done`, whose `cmd` has `features` too.

    Args:
        event: The Struct.
        name: The event's tag, or the Struct's name for a form of `done`.
    """
    described = _described(_Parts(name, _NEWER_IN_EVENTS), event, with_features=False)
    if issubclass(event, events.Done):
        described["fields"]["cmd"] = _entry((DONE_CMD,), with_features=True)
    return described


def _described(parts: "_Parts", struct: type[msgspec.Struct], *, with_features: bool) -> Json:
    fields: dict[str, Json] = {}
    for part in _merged(parts.of_struct(type_info(struct))):
        entry = _entry(part.newer, with_features=with_features)
        if condition := _CONDITIONS.get(f"{part.path}.{part.value}"):
            entry["when"] = condition
        if part.value is None:
            fields[part.path] = entry
        else:
            fields[part.path].setdefault(part.group, {})[part.value] = entry
    return {**_entry(parts.listed_as(parts.owner, ()), with_features=with_features), "fields": fields}


def _entry(newer: tuple[str, ...], *, with_features: bool) -> Json:
    if not newer:
        return {"since": FIRST}
    return {"since": CURRENT, "features": list(newer)} if with_features else {"since": CURRENT}


def _merged(parts: Iterator[_Part]) -> list[_Part]:
    """Return each part once. One that several Structs of a union have is as old as the oldest of them."""
    found: dict[tuple[str, str | None], _Part] = {}
    for part in parts:
        key = (part.path, part.value)
        before = found.get(key, part)
        both = bool(before.newer and part.newer)
        found[key] = part._replace(newer=tuple(dict.fromkeys((*before.newer, *part.newer))) if both else ())
    return sorted(found.values(), key=lambda part: part.value is not None)


class _Parts:
    """Finds the fields and values of one command or event.

    Args:
        owner: Its name, with which the names in `listed` start.
        listed: Names of newer parts.
    """

    def __init__(self, owner: str, listed: frozenset[str]) -> None:
        self.owner = owner
        self._listed = listed

    def listed_as(self, name: str, inherited: tuple[str, ...]) -> tuple[str, ...]:
        """Return what makes a part newer: its own name, if that is listed, or else that of what it is in."""
        return (name,) if name in self._listed else inherited

    def of_struct(self, struct: Type) -> Iterator[_Part]:
        """Yield all parts of the command or event."""
        assert isinstance(struct, StructType)
        yield from self._fields(struct, "", self.owner, self.listed_as(self.owner, ()))

    def _fields(self, struct: StructType, path: str, name: str, newer: tuple[str, ...]) -> Iterator[_Part]:
        if struct.tag_field == "type":  # of a union: what the other members have not is as new as this one
            yield _Part(f"{path}type", None, newer)
            newer = self.listed_as(f"{name}.{struct.tag}", newer)
            yield _Part(f"{path}type", str(struct.tag), newer)
        for field in struct.fields:
            inner = f"{name}.{field.encode_name}"
            own = self.listed_as(inner, newer)
            yield _Part(path + field.encode_name, None, own)
            for form in _FORMS:
                if listed := self.listed_as(f"{inner}.{form}", ()):
                    yield _Part(path + field.encode_name, form, listed, "forms")
            yield from self._inside(field.type, path + field.encode_name, inner, own)

    def _inside(self, kind: Type, path: str, name: str, newer: tuple[str, ...]) -> Iterator[_Part]:
        match kind:
            case Metadata():
                yield from self._inside(kind.type, path, name, newer)
            case UnionType():
                for part in kind.types:
                    yield from self._inside(part, path, name, newer)
            case LiteralType():
                for value in kind.values:
                    text = value if isinstance(value, str) else json.dumps(value)
                    yield _Part(path, text, self.listed_as(f"{name}.{text}", newer))
            case StructType():
                yield from self._fields(kind, f"{path}.", name, newer)
            case ListType():
                yield from self._inside(kind.item_type, f"{path}[]", name, newer)
            case TupleType():
                yield from self._inside(kind.item_types[0], f"{path}[]", name, newer)
            case DictType() if not isinstance(kind.value_type, AnyType):
                yield _Part(f"{path}.*", None, newer)
            case _:
                pass
