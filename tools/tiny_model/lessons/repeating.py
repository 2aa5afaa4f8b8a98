"""Repeating and counting."""

from typing import Final

from . import phrases
from .example import Example, asked
from .source import Source
from .words import NAMES, THINGS

_REPEAT_VERBS: Final = (
    "repeat",
    "say",
    "echo",
    "copy",
    "write",
    "print",
    "answer with",
    "reply with",
    "type",
    "say again",
)
_REPEAT_OBJECTS: Final = ("", " this", " after me", " exactly", " the following", " this text", " exactly this",
                          " these words", " what I say", " this line")  # fmt: skip
_WORD_VERBS: Final = ("say", "repeat", "write", "print", "say the word", "repeat the word", "write the word", "give me",
                      "type", "print the word")  # fmt: skip
_COUNT_VERBS: Final = ("count from {a} to {b}", "count up from {a} to {b}", "list the numbers from {a} to {b}",
                       "count on from {a} to {b}", "write the numbers from {a} to {b}")  # fmt: skip
_COUNT_NOUNS: Final = ("the numbers from {a} to {b}", "all numbers from {a} to {b}", "the numbers {a} to {b}")
_DOWN_VERBS: Final = ("count down from {a} to {b}", "count backwards from {a} to {b}", "count back from {a} to {b}")
_HOW_MANY_FRAMES: Final = (
    "How many words are there", "How many words are in this list", "Count the words", "How many things are these",
    "How many items are in this list", "Count these things", "How many items are there", "Count the items",
    "How many of these are there", "How many items do you see", "Count the things in this list", "Count these",
    "How many words do I list", "Please count these words", "How many things do you see", "How many are these",
    "Count all these words", "How many entries has this list", "Count what is in this list",
    "How many words do you see",
)  # fmt: skip
_TIMES: Final = ("two", "three", "four", "five", "2", "3", "4", "5")
_VALUES: Final = {"two": 2, "three": 3, "four": 4, "five": 5}


def repeating(source: Source) -> Example:
    """Ask to repeat a text: words, numbers, identifiers, any script."""
    text = _text(source)
    verb = source.any(_REPEAT_VERBS) + source.any(_REPEAT_OBJECTS)
    question = phrases.order(source, verb) + source.any((f": {text}", f": {text}", f' "{text}"', f":\n{text}"))
    return asked("repeating", phrases.opened(source, question), text)


def times(source: Source) -> Example:
    """Ask for a word several times."""
    word, often = source.identifier(THINGS), source.any(_TIMES)
    count = _VALUES.get(often) or int(often)
    question = phrases.done(source, f"{source.any(_WORD_VERBS)} {word} {often} times")
    return asked("repeating", phrases.spoken(source, question), " ".join([word] * count))


def counting(source: Source) -> Example:
    """Ask to count from one number to another, up or down."""
    a = source.between(0, 99) if source.chance(0.5) else 1
    b = a + (source.between(1, 12) if source.chance(0.8) else source.between(12, 99))
    b = min(b, 120)
    numbers = list(range(a, b + 1))
    if source.chance(0.25):
        question = phrases.done(source, source.any(_DOWN_VERBS).format(a=b, b=a))
        numbers.reverse()
    elif source.chance(0.7):
        question = phrases.done(source, source.any(_COUNT_VERBS).format(a=a, b=b))
    else:
        question = phrases.told(source, source.any(_COUNT_NOUNS).format(a=a, b=b))
    return asked("counting", phrases.spoken(source, question), ", ".join(str(number) for number in numbers))


def how_many(source: Source) -> Example:
    """Ask for the number of words in a list."""
    words = [source.identifier(THINGS) for _ in range(source.between(1, 9))]
    question = phrases.opened(source, f"{source.one(_HOW_MANY_FRAMES)}: {', '.join(words)}")
    numbered = ", ".join(f"{index} {word}" for index, word in enumerate(words, 1))
    return asked("counting", question, f"{numbered}. That makes {len(words)}.")


def _text(source: Source) -> str:
    kind = source.between(0, 5)
    if kind == 0:
        return source.foreign()
    if kind == 1:
        return "".join(
            source.random.choices("abcdefghijklmnopqrstuvwxyzABCDEFXYZ0123456789-_", k=source.between(3, 14))
        )
    if kind == 2:
        return " ".join(str(source.between(0, 9999)) for _ in range(source.between(1, 6)))
    words = [source.identifier(NAMES if source.chance(0.3) else THINGS) for _ in range(source.between(1, 9))]
    if kind == 3:
        words = [word.capitalize() for word in words]
    return source.any([" ", ", ", " "]).join(words)
