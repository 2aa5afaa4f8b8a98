"""Phrases for questions, composed of parts, so that the model learns the parts."""

from typing import Final

from .source import Source

_TELL: Final = (
    "What is {}?", "Tell me {}.", "Give me {}.", "Show me {}.", "I want to know {}.", "I need {}.", "What's {}?",
    "Please tell me {}.", "Can you tell me {}?", "Could you tell me {}?", "Please give me {}.", "{}, please.", "{}?",
    "I would like to know {}.", "Do you know {}?", "Can you give me {}?", "Find {}.", "I would like {}.", "Say {}.",
    "Could you give me {}?", "Let me know {}.", "Please show me {}.", "I am looking for {}.", "Can you find {}?",
    "Can you show me {}?", "Find out {}.", "Please say {}.", "What would be {}?", "Do you have {}?", "I'd like {}.",
    "Would you tell me {}?", "I ask for {}.", "Please find {}.", "Now I need {}.", "And {}?",
)  # fmt: skip
_DO: Final = (
    "{}.", "Please {}.", "Can you {}?", "Could you {}?", "I want you to {}.", "I would like you to {}.", "{}, please.",
    "Now {}.", "Would you {}?", "You should {}.", "I need you to {}.", "Will you {}?", "Just {}.", "Kindly {}.",
    "Can you please {}?", "Your task is to {}.", "Try to {}.", "Let us {}.", "It is time to {}.",
    "Could you please {}?",
    "Next, {}.", "Do this: {}.", "You can {}.", "I ask you to {}.", "Then {}.",
)  # fmt: skip
_OPENERS: Final = (
    "Hi! ", "Hello! ", "OK. ", "Good. ", "Hey, ", "A question: ", "I have a question. ", "Well, ", "So, ", "Great! ",
    "All right. ", "Next: ", "Fine. ", "Now: ", "Hello, ", "Here is a task. ", "Another one: ", "Listen. ", "Yes. ",
    "Nice. ",
)  # fmt: skip
_CLOSERS: Final = (
    " Thanks!", " Thank you.", " Please.", " I am curious.", " Thanks.", " It is for a test.", " Be quick.",
    " I do not know.", " It is important.", " Thank you!",
)  # fmt: skip


def told(source: Source, thing: str) -> str:
    """Ask for a thing."""
    return _capital(source.one(_TELL).format(thing))


def done(source: Source, action: str) -> str:
    """Ask for an action."""
    return _capital(source.one(_DO).format(action))


def order(source: Source, action: str) -> str:
    """Ask for an action on what follows, such as a text after a colon."""
    return done(source, action).rstrip("?.")


def spoken(source: Source, text: str) -> str:
    """Write a question as people type it: some without capital or full stop, some with words around it."""
    if source.chance(0.2):
        text = text[0].lower() + text[1:]
    if source.chance(0.2):
        text = text.rstrip("?.!")
    elif source.chance(0.1):
        text += source.one(_CLOSERS)
    return opened(source, text)


def opened(source: Source, text: str) -> str:
    """Add words before a part of the questions."""
    return source.one(_OPENERS) + text if source.chance(0.12) else text


def listed(parts: list[str], last: str = " and ") -> str:
    """Join parts to a list in a sentence."""
    return last.join(filter(None, [", ".join(parts[:-1]), parts[-1]]))


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]
