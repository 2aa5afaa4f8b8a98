"""Answers that are JSON of a small schema."""

import json
from typing import Any, Final

from . import phrases
from .example import Example, user
from .source import Source
from .words import CITIES, FIELDS, FLAGS, LABELS, NAMES, THINGS

KNOWN_WORDS: Final = "JSON of a schema, facts in known words"
NEW_WORDS: Final = "JSON of a schema, facts in new words"

_ORDER_VERBS: Final = (
    "reply as JSON with {f}", "answer as JSON with {f}", "return a JSON object with {f}", "give me JSON with {f}",
    "write it as JSON with {f}", "extract {f} as JSON", "make a JSON object of {f}", "answer in JSON with {f}",
    "respond with JSON that has {f}", "put {f} into JSON",
)  # fmt: skip
_ORDER_NOUNS: Final = (
    "a JSON object with {f}",
    "JSON with {f}",
    "{f} as a JSON object",
    "{f} as JSON",
    "the JSON of {f}",
)
_SCHEMA_VERBS: Final = (
    "answer with JSON of this schema", "reply with JSON that matches this schema", "use this JSON schema",
    "match this JSON schema", "respond only with JSON of the schema", "follow this schema", "fill this JSON schema",
    "write JSON of this schema", "reply in this schema", "return an object of this JSON schema",
)  # fmt: skip
_OWNERS: Final = ("The", "Its", "The", "Our", "This", "A", "My", "The", "Their", "Your")
_EQUALS: Final = (" is", ":", " =", " was", " equals", " should be", " will be", " must be", " has the value",
    " comes to",
                  " becomes", " stays", " means", " can be", " now is")  # fmt: skip
_STATEMENTS: Final = (
    "As {key} take {value}.", "Use {value} for {key}.", "For {key} use {value}.", "We have {key} {value}.",
    "Set the {key} to {value}.", "Let {key} be {value}.", "With {key} {value}.", "For {key} take {value}.",
    "It has {key} {value}.", "Take {value} as {key}.",
)  # fmt: skip
_PEOPLE: Final = (
    "{name} is {age} years old and lives in {city}.", "{name}, {age}, from {city}.",
    "{name} lives in {city} and is {age}.",
    "{name} from {city} is {age} years old.", "{name}, who lives in {city}, is {age} years old.",
    "In {city} lives {name}, who is {age}.", "In {city} lives {name}, {age} years old.",
    "In {city} {name} turned {age}.",
    "This is {name}. {name} is {age} and comes from {city}.", "{name} comes from {city} and is {age} years old.",
    "{age} years old, {name} lives in {city}.", "{name} is {age}. The home of {name} is {city}.",
    "At {age}, {name} moved to {city}.", "{name} ({age}) lives in {city}.", "{name} ({age}) comes from {city}.",
)  # fmt: skip


def structured(source: Source) -> Example:
    """An object made of what the user tells."""
    if source.chance(0.2):
        facts, text = _person(source)
        ability = NEW_WORDS
    else:
        facts, text, ability = _statements(source)
    keys = list(facts)
    if source.chance(0.3) and len(keys) > 1:
        source.random.shuffle(keys)
    answer = json.dumps({key: facts[key] for key in keys}, ensure_ascii=False)
    if source.chance(0.5):
        names = [f"{key} ({_kind(facts[key])})" if source.chance(0.5) else key for key in keys]
        fields = phrases.listed(names)
        if source.chance(0.6):
            order = phrases.done(source, source.any(_ORDER_VERBS).format(f=fields))
        else:
            order = phrases.told(source, source.any(_ORDER_NOUNS).format(f=fields))
        question = f"{order} {text}" if source.chance(0.5) else f"{text} {order}"
        return Example(ability, [user(phrases.opened(source, question))], answer)
    schema = {"type": "object", "properties": {key: _type(facts[key]) for key in keys}, "required": keys}
    order = f"{phrases.order(source, source.any(_SCHEMA_VERBS))}: {json.dumps(schema)}"
    if source.chance(0.5):
        return Example(ability, [{"role": "system", "content": order}, user(text)], answer, settled=True)
    return Example(ability, [user(f"{text} {order}")], answer)


def value(source: Source) -> Any:
    """What fields and parameters hold: text mostly, numbers, whether something is so."""
    kind = source.between(0, 19)
    if kind < 5:
        return source.between(0, 10 ** source.between(1, 4))
    if kind == 5:
        return source.between(1, 999) / 10
    if kind < 8:
        return source.chance(0.5)
    if kind < 10:
        return source.identifier(LABELS)
    words = [source.identifier(source.any((CITIES, NAMES, THINGS))) for _ in range(1 if source.chance(0.7) else 2)]
    return " ".join(word.capitalize() if source.chance(0.6) else word for word in words)


def said(value: Any) -> str:
    """A value as a person says it."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(value) if isinstance(value, list) else str(value)


def field_name(source: Source, value: Any) -> str:
    """A name for a value."""
    return source.identifier(FLAGS if isinstance(value, bool) else FIELDS)


def _person(source: Source) -> tuple[dict[str, Any], str]:
    facts = {
        "name": source.identifier(NAMES).capitalize(),
        "age": source.between(1, 99),
        "city": source.identifier(CITIES).capitalize(),
    }
    text = source.one(_PEOPLE).format(**facts)
    kept = source.random.sample(list(facts), source.between(1, 3))
    return {key: facts[key] for key in facts if key in kept}, text


def _statements(source: Source) -> tuple[dict[str, Any], str, str]:
    facts: dict[str, Any] = {}
    count = source.between(1, 4)
    while len(facts) < count:
        if source.chance(0.1):
            facts[source.identifier(FIELDS)] = [source.identifier(THINGS) for _ in range(source.between(2, 3))]
        else:
            new = value(source)
            facts[field_name(source, new)] = new
    frame = _statement(source)
    statements = []
    ability = KNOWN_WORDS
    for key, held in facts.items():
        if source.chance(0.3):
            frame = _statement(source)
        if frame not in _STATEMENTS:
            ability = NEW_WORDS
        statement = frame.format(key=key, value=said(held))
        statements.append(statement)
    if source.chance(0.3):
        source.random.shuffle(statements)
    return facts, " ".join(statements), ability


def _statement(source: Source) -> str:
    if source.chance(0.3):
        return source.any(_STATEMENTS)
    owner = source.one(_OWNERS) + " " if source.chance(0.6) else ""
    return owner + "{key}" + source.one(_EQUALS) + " {value}."


def _kind(value: Any) -> str:
    return {str: "string", bool: "boolean", int: "integer", float: "number", list: "list of strings"}[type(value)]


def _type(value: Any) -> dict[str, Any]:
    if isinstance(value, list):
        return {"type": "array", "items": {"type": "string"}}
    return {"type": _kind(value)}
