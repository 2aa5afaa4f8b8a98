"""Tools of widespread examples, so that the model handles these well. For training alone."""

from collections.abc import Callable
from typing import Any, Final

from .example import Tool
from .source import Source
from .words import CITIES, NAMES, THINGS

Entry = tuple[Tool, str, tuple[str, ...], Callable[[Source], dict[str, Any]]]


def _tool(name: str, description: str, **types: Any) -> Tool:
    properties = {
        key: {"type": kind} if isinstance(kind, str) else {"type": "string", "enum": kind}
        for key, kind in types.items()
    }
    parameters = {"type": "object", "properties": properties, "required": list(types)}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}


def _city(source: Source) -> str:
    return source.identifier(CITIES).capitalize()


def _number(source: Source) -> int:
    return source.between(0, 999)


CATALOGUE: Final[tuple[Entry, ...]] = (
    (
        _tool("get_weather", "Get the current weather in a city.", city="string"),
        "The weather in {city}",
        ("What is the weather in {city}?", "How is the weather in {city}?", "What's the weather like in {city}?",
         "Is it raining in {city}?", "Tell me the weather in {city}.", "weather in {city}", "Weather in {city}?"),
        lambda source: {"city": _city(source)},
    ),
    (
        _tool("get_weather", "Get the weather.", location="string", unit=["celsius", "fahrenheit"]),
        "The weather in {location}",
        ("What is the weather in {location} in {unit}?", "Weather in {location}, {unit}.",
         "How warm is it in {location}? Use {unit}."),
        lambda source: {"location": _city(source), "unit": source.any(("celsius", "fahrenheit"))},
    ),
    (
        _tool("get_current_weather", "Get the current weather in a given location", location="string"),
        "The weather in {location}",
        ("What is the weather in {location}?", "How is the weather in {location} today?", "Weather in {location}?"),
        lambda source: {"location": _city(source)},
    ),
    (
        _tool("get_time", "Get the current time in a city.", city="string"),
        "The time in {city}",
        ("What time is it in {city}?", "What is the time in {city}?", "Tell me the time in {city}."),
        lambda source: {"city": _city(source)},
    ),
    (
        _tool("add", "Add two numbers.", a="integer", b="integer"),
        "The sum of {a} and {b}",
        ("Add {a} and {b}.", "What is {a} + {b}?", "Use the tool to add {a} and {b}.", "What is {a} plus {b}?"),
        lambda source: {"a": _number(source), "b": _number(source)},
    ),
    (
        _tool("multiply", "Multiply two numbers.", a="integer", b="integer"),
        "The product of {a} and {b}",
        ("Multiply {a} and {b}.", "What is {a} * {b}?", "What is {a} times {b}?"),
        lambda source: {"a": _number(source), "b": _number(source)},
    ),
    (
        _tool("send_email", "Send an email.", to="string", subject="string"),
        "The email to {to}",
        ("Send an email to {to} about {subject}.", "Email {to} about {subject}.", "Write to {to} about {subject}."),
        lambda source: {"to": source.identifier(NAMES).capitalize(), "subject": source.identifier(THINGS)},
    ),
    (
        _tool("search_web", "Search the web.", query="string"),
        "On {query}",
        ("Search the web for {query}.", "Search for {query}.", "Find {query} on the web.", "Look up {query}."),
        lambda source: {"query": f"{source.identifier(THINGS)} {source.identifier(THINGS)}"},
    ),
    (
        _tool("set_timer", "Set a timer.", minutes="integer"),
        "The timer for {minutes} minutes",
        ("Set a timer for {minutes} minutes.", "Start a timer of {minutes} minutes.", "Timer: {minutes} minutes."),
        lambda source: {"minutes": source.between(1, 120)},
    ),
    (
        _tool("translate", "Translate a text into a language.", text="string", language="string"),
        "{text} in {language}",
        ("Translate {text} into {language}.", "What is {text} in {language}?", "Translate {text} to {language}."),
        lambda source: {
            "text": source.identifier(THINGS),
            "language": source.any(("French", "German", "Spanish", "Greek", "Japanese")),
        },
    ),
    (
        _tool("play_music", "Play music of an artist.", artist="string"),
        "Music by {artist}",
        ("Play music by {artist}.", "Play something by {artist}.", "I want to hear {artist}."),
        lambda source: {"artist": source.identifier(NAMES).capitalize()},
    ),
    (
        _tool("get_stock_price", "Get the price of a stock.", symbol="string"),
        "The price of {symbol}",
        ("What is the stock price of {symbol}?", "Get the price of {symbol}.", "How is the stock {symbol} doing?"),
        lambda source: {"symbol": source.invented()[:4].upper()},
    ),
)  # fmt: skip
"""A tool, the topic of its results, its questions, and arguments."""
