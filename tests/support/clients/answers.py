"""Answers that every client receives from the servers of tests/real_clients."""

from typing import Any, Final

ANSWERED: Final = "It is 21 degrees in Rome."
"""Answer to the result of the tool `weather`."""


def check_text(answer: Any) -> None:
    """Assert that an answer has the built-in model's text and counts its tokens."""
    assert "lmwire" in answer["text"]
    assert answer["tokens"] > 0


def check_person(person: Any) -> None:
    """Assert that an answer follows the schema of a person."""
    assert person.keys() == {"name", "age"}
    assert len(person["name"]) <= 8
    assert 0 <= person["age"] <= 120
