"""Tests that run at night, and the sample of them that runs for each commit."""

from collections.abc import Container, Iterable
from typing import Any, TypeVar

import pytest

T = TypeVar("T")

are_left_out = False
"""The run leaves out the tests of the night. Its processes then do not make them, which would take seconds."""


def nightly_but(sample: Container[T], values: Iterable[T]) -> list[Any]:
    """Return the values of a test's parameter, with the mark `nightly` on those outside the sample.

    Args:
        sample: The values that run for each commit.
        values: All values.
    """
    if are_left_out:
        return [value for value in values if value in sample]
    return [value if value in sample else pytest.param(value, marks=pytest.mark.nightly) for value in values]


def asked_for(request: pytest.FixtureRequest, *parameters: str) -> list[tuple[Any, ...]]:
    """Return what the selected tests of the module need from a fixture that prepares all of it at once.

    Args:
        request: The request of the fixture.
        parameters: The names of the tests' parameters. Tests without one of them are left out.
    """
    items = [item for item in request.session.items if isinstance(item, pytest.Function)]
    wanted = [item.callspec.params for item in items if item.path == request.path and hasattr(item, "callspec")]
    return list(
        dict.fromkeys(tuple(each[name] for name in parameters) for each in wanted if each.keys() >= set(parameters))
    )
