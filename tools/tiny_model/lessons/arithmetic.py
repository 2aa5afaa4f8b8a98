"""Adding, subtracting and comparing small numbers, with and without a worked step before the answer."""

from typing import Final

from . import phrases
from .example import Example, user
from .source import Source
from .words import NAMES, THINGS

TOP: Final = 99

# What can be asked for, what can be asked to be done, and what is typed alone.
_SUM_NOUNS: Final = (
    "{a} + {b}",
    "{a} plus {b}",
    "the sum of {a} and {b}",
    "{b} more than {a}",
    "the total of {a} and {b}",
)
_SUM_VERBS: Final = (
    "add {a} and {b}", "calculate {a} + {b}", "add {b} to {a}", "compute {a} + {b}", "work out {a} + {b}",
    "sum up {a} and {b}", "solve {a} + {b}", "calculate the sum of {a} and {b}", "add {a} + {b}",
    "work out {a} plus {b}",
)  # fmt: skip
_DIFFERENCE_NOUNS: Final = (
    "{a} - {b}", "{a} minus {b}", "the difference of {a} and {b}", "{b} less than {a}", "{a} without {b}",
)  # fmt: skip
_DIFFERENCE_VERBS: Final = (
    "subtract {b} from {a}", "calculate {a} - {b}", "take {b} from {a}", "compute {a} - {b}", "work out {a} - {b}",
    "take {b} away from {a}", "solve {a} - {b}", "calculate {a} minus {b}", "subtract {a} - {b}",
    "work out {a} minus {b}",
)  # fmt: skip
_BARE: Final = ("{}", "{}?", "{} =", "How much is {}?", "{} = ?", "What does {} make?", "How much does {} make?", "{}.",
                "What do you get for {}?", "And how much is {}?")  # fmt: skip
_STARTS: Final = ("{name} has {a} {things}", "{name} had {a} {things}", "There are {a} {things}",
    "There were {a} {things}",
                  "In a box are {a} {things}")  # fmt: skip
_GAINS: Final = ("gets {b} more", "buys {b} more", "finds {b} more", "{b} more come", "then adds {b} more",
                 "receives {b} more", "takes {b} more", "{b} more are added", "wins {b} more",
                 "then gets another {b}")  # fmt: skip
_LOSSES: Final = ("loses {b}", "gives {b} away", "sells {b}", "{b} are taken away", "then gives away {b}",
                  "eats {b}", "breaks {b}", "{b} get lost", "drops {b}", "then loses {b} of them")  # fmt: skip
_ENDS: Final = ("How many are there now?", "How many is that?", "How many {things} are there now?", "How many now?",
                "How many does that make?", "How many {things} is that?", "How many are there then?",
                "What is the number of {things} now?", "How many are there?",
                "How many {things} are there?")  # fmt: skip
_COMPARE_NOUNS: Final = ("the larger of {a} and {b}", "the larger number, {a} or {b}", "the greater of {a} and {b}",
                         "the bigger of {a} and {b}", "the larger one of {a} and {b}")  # fmt: skip
_LARGER_FRAMES: Final = (
    "Which is larger, {a} or {b}?", "Which is larger: {a} or {b}?", "Which number is larger, {a} or {b}?",
    "Which is greater, {a} or {b}?", "What is larger, {a} or {b}?", "What is more, {a} or {b}?", "Compare {a} and {b}.",
    "Which is bigger, {a} or {b}?", "Is {a} or {b} larger?", "Which of {a} and {b} is larger?", "Compare {a} with {b}.",
    "Please compare {a} and {b}.", "{a} or {b}: which is larger?", "Which of {a} and {b} is greater?",
    "Which number is greater, {a} or {b}?", "Is {a} or {b} bigger?", "Which is the larger number, {a} or {b}?",
    "{a} or {b}: which is greater?", "Which is the bigger one, {a} or {b}?", "Which of {a} and {b} is bigger?",
)  # fmt: skip
_LESS_FRAMES: Final = ("Is {a} {less} {b}?", "Is it true that {a} is {less} {b}?", "Tell me whether {a} is {less} {b}.",
                       "Is the number {a} {less} {b}?", "Is it so that {a} is {less} {b}?", "Would {a} be {less} {b}?",
                       "Can {a} be {less} {b}?", "Say whether {a} is {less} {b}.", "{a} is {less} {b}, right?",
                       "Do you think that {a} is {less} {b}?")  # fmt: skip
_LESS: Final = ("less than", "smaller than", "below", "lower than", "really less than", "<", "under", "truly less than")


def addition(source: Source) -> Example:
    """Ask for a sum of two numbers."""
    a, b = source.numbers(TOP)
    units = a % 10 + b % 10
    carry = units // 10
    tens = f"{a // 10} + {b // 10} + {carry} = {a // 10 + b // 10 + carry}"
    steps = f"{a % 10} + {b % 10} = {units}. {tens}."
    return _worked(
        source, "addition", _question(source, _SUM_NOUNS, _SUM_VERBS, _GAINS, a, b), steps, f"{a} + {b} = {a + b}."
    )


def subtraction(source: Source) -> Example:
    """Ask for a difference of two numbers, which may be negative."""
    a, b = source.numbers(TOP)
    if a < b and source.chance(0.6):
        a, b = b, a
    high, low = max(a, b), min(a, b)
    borrow = int(high % 10 < low % 10)
    units = high % 10 + 10 * borrow
    tens = f"{high // 10} - {low // 10} - {borrow} = {high // 10 - low // 10 - borrow}"
    order = f"{a} < {b}. " if a < b else ""
    steps = f"{order}{units} - {low % 10} = {units - low % 10}. {tens}."
    return _worked(
        source,
        "subtraction",
        _question(source, _DIFFERENCE_NOUNS, _DIFFERENCE_VERBS, _LOSSES, a, b),
        steps,
        f"{a} - {b} = {a - b}.",
    )


def comparison(source: Source) -> Example:
    """Ask which of two numbers is larger, or if one is less."""
    a, b = source.numbers(TOP)
    if source.chance(0.05):
        b = a
    sign = "<" if a < b else ">" if a > b else "="
    tens = "<" if a // 10 < b // 10 else ">" if a // 10 > b // 10 else "="
    steps = f"{a // 10} {tens} {b // 10}."
    if tens == "=":
        steps += f" {a % 10} {sign} {b % 10}."
    if source.chance(0.3):
        question = source.one(_LESS_FRAMES).format(a=a, b=b, less=source.any(_LESS))
        answer = f"Yes, {a} is less than {b}." if a < b else f"No, {a} is not less than {b}."
    else:
        told = source.chance(0.3)
        question = phrases.told(source, source.any(_COMPARE_NOUNS)) if told else source.one(_LARGER_FRAMES)
        question = question.format(a=a, b=b)
        answer = f"{max(a, b)} is larger than {min(a, b)}." if a != b else f"{a} and {b} are equal."
    return _worked(source, "comparison", question, steps, answer)


def _question(
    source: Source, nouns: tuple[str, ...], verbs: tuple[str, ...], changes: tuple[str, ...], a: int, b: int
) -> str:
    kind = source.between(0, 9)
    if kind < 3:
        frame = phrases.told(source, source.any(nouns))
    elif kind < 6:
        frame = phrases.done(source, source.any(verbs))
    elif kind < 8:
        frame = source.one(_BARE).format(source.any(nouns))
    else:
        frame = f"{source.any(_STARTS)} and {source.any(changes)}. {source.one(_ENDS)}"
    return frame.format(a=a, b=b, name=source.one(NAMES), things=_plural(source.one(THINGS)))


def _plural(thing: str) -> str:
    return thing + "es" if thing.endswith(("s", "x", "ch", "sh")) else thing + "s"


def _worked(source: Source, kind: str, question: str, steps: str, answer: str) -> Example:
    asked = phrases.spoken(source, question)
    if source.chance(0.5):
        return Example(f"{kind}, thinking", [user(asked)], f"<think>\n{steps}\n</think>\n\n{answer}", thinking=True)
    return Example(f"{kind}, not thinking", [user(asked)], answer, thinking=False)
