"""Answers in JSON, of a small schema."""

import json
from typing import Any, Final

from . import phrases
from .example import Example, user
from .source import Source
from .words import CITIES, FIELDS, FLAGS, LABELS, NAMES, THINGS

KNOWN_WORDS: Final = "JSON of a schema, facts in known words"
NEW_WORDS: Final = "JSON of a schema, facts in new words"
HELD: Final = "JSON held to a schema"

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
_OWNERS: Final = ("The", "Its", "The", "Our", "This", "A", "My", "The", "Their", "Your",
    "That", "Her", "Every", "One", "His", "Each", "Another", "The new", "The old", "The other")  # fmt: skip
_EQUALS: Final = (" is", ":", " =", " was", " equals", " should be", " will be", " must be", " has the value",
    " comes to",
                  " becomes", " stays", " means", " can be", " now is",
    " reads", " shows", ", as we know, is", " remains", " turned out to be", " is set to", " is exactly", " ->",
    " is still", " is listed as", " gives", " is known to be", " today is", " counts as", " is recorded as", " says",
    " is really", ", I think, is", " was found to be", " is marked", " has become", " as of now is", " is called",
    " amounts to", " is given as", " holds", " has", " is always", " would be", " is probably",
)  # fmt: skip
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
    "{name} works in {city} and is {age}.", "Meet {name}, {age}, of {city}.", "I met {name} in {city}, aged {age}.",
    "My friend {name} is {age} and lives in {city}.", "{city} is the home of {name}, who is {age}.",
    "{name} is a {age} year old from {city}.", "At the age of {age}, {name} still lives in {city}.",
    "I know {name} from {city}, who is {age}.", "Born in {city}, {name} is now {age}.", "{name}: {age}, {city}.",
    "I am {name}, {age} years old, from {city}.", "Last year {name} was in {city}, at {age} years.",
    "The age of {name} is {age}, the city is {city}.", "{name} has a flat in {city} and is {age} years of age.",
    "Her name is {name}, she is {age}, and {city} is her city.", "{name} moved to {city} when {age}.",
    "His name is {name}. He is {age}. He lives in {city}.", "We sent {name}, {age}, to {city}.",
    "{name} stays in {city}; {name} is {age}.", "Our guest {name} ({age}) arrived from {city}.",
    "{name} likes {city} and has just turned {age}.", "There is {name}, {age} years, near {city}.",
    "{age}-year-old {name} lives in {city}.", "{name} grew up in {city} and is {age} today.",
    "A person called {name}, {age}, visits {city}.", "{name}, {age}", "{name} is {age}.", "{name} is {age} years old.",
    "{name} ({age})", "{name} lives in {city}.", "{name} from {city}.", "{name}, {age}.", "{name} has turned {age}.",
    "{name}, {age} years old.", "{name}, {city}", "I am {name} and {age} years old.", "{name} moved to {city}.",
    "My name is {name} and I am {age}.", "My name is {name}, I live in {city}.", "{name} is from {city}.",
)  # fmt: skip


def structured(source: Source) -> Example:
    """Ask for an object with the facts of a text."""
    facts, text, ability = _told(source)
    answer = _written(source, facts)
    if source.chance(0.5):
        order = _order(source, facts)
        question = f"{order} {text}" if source.chance(0.5) else f"{text} {order}"
        return Example(ability, [user(phrases.opened(source, question))], answer)
    order = f"{phrases.order(source, source.any(_SCHEMA_VERBS))}: {json.dumps(_schema(facts))}"
    if source.chance(0.5):
        return Example(ability, [{"role": "system", "content": order}, user(text)], answer, settled=True)
    return Example(ability, [user(f"{text} {order}")], answer)


def held(source: Source) -> Example:
    """Ask for such an object through the request's format, which the model does not see.

    The text may not mention the fields.
    """
    facts, text, _ = _told(source)
    question = f"{text} {_order(source, facts)}" if source.chance(0.3) else text
    return Example(HELD, [user(phrases.opened(source, question))], _compact(facts), schema=_schema(facts))


def _told(source: Source) -> tuple[dict[str, Any], str, str]:
    """Return facts in the wanted order, the text that contains them, and the ability."""
    if source.chance(0.2):
        facts, text = _person(source)
        ability = NEW_WORDS
    else:
        facts, text, ability = _statements(source)
    keys = list(facts)
    if source.chance(0.3) and len(keys) > 1:
        source.random.shuffle(keys)
    return {key: facts[key] for key in keys}, text, ability


def _order(source: Source, facts: dict[str, Any]) -> str:
    names = [f"{key} ({_kind(held)})" if source.chance(0.5) else key for key, held in facts.items()]
    fields = phrases.listed(names)
    if source.chance(0.6):
        return phrases.done(source, source.any(_ORDER_VERBS).format(f=fields))
    return phrases.told(source, source.any(_ORDER_NOUNS).format(f=fields))


def _schema(facts: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {key: _type(held) for key, held in facts.items()},
        "required": list(facts),
    }


def _written(source: Source, facts: dict[str, Any]) -> str:
    """Write JSON, mostly without spaces, as in answers that a schema constrains."""
    return _compact(facts) if source.chance(0.8) else json.dumps(facts, ensure_ascii=False)


def _compact(facts: dict[str, Any]) -> str:
    return json.dumps(facts, ensure_ascii=False, separators=(",", ":"))


def value(source: Source) -> Any:
    """Return a value of a field or parameter: mostly a text, else a number or a boolean."""
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
    """Return a value as a person writes it."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(value) if isinstance(value, list) else str(value)


def field_name(source: Source, value: Any) -> str:
    """Return a name for a value."""
    return source.identifier(FLAGS if isinstance(value, bool) else FIELDS)


def _person(source: Source) -> tuple[dict[str, Any], str]:
    facts = {
        "name": source.identifier(NAMES).capitalize(),
        "age": source.between(1, 99),
        "city": source.identifier(CITIES).capitalize(),
    }
    frame = source.one(_PEOPLE)
    facts = {key: held for key, held in facts.items() if f"{{{key}}}" in frame}
    kept = source.random.sample(list(facts), source.between(1, len(facts)))
    return {key: facts[key] for key in facts if key in kept}, frame.format(**facts)


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
    if source.chance(0.06) and not source.held_out:  # whatever stands between them
        return f"{owner}{{key}} {source.invented()} {{value}}."
    return owner + "{key}" + source.one(_EQUALS) + " {value}."


def _kind(value: Any) -> str:
    return {str: "string", bool: "boolean", int: "integer", float: "number", list: "list of strings"}[type(value)]


def _type(value: Any) -> dict[str, Any]:
    if isinstance(value, list):
        return {"type": "array", "items": {"type": "string"}}
    return {"type": _kind(value)}
