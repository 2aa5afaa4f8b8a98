"""The page on the Python client, made from the public names of the package and their docstrings."""

import inspect
from collections.abc import Iterator
from typing import Any, is_typeddict

import lmwire

INTRODUCTION = """# The Python client

Every public name of the package `lmwire`, with its docstring. [The Python client](../docs/python.md) shows how they are
used together.
"""
GROUPS = ("Workers and answers", "Functions and constants", "Options", "Errors")


def make_page() -> str:
    """Return the page in Markdown, whose `:::` lines mkdocstrings replaces."""
    groups: dict[str, list[str]] = {group: [] for group in GROUPS}
    for name in lmwire.__all__:
        groups[_group(getattr(lmwire, name))].append(name)
    return "\n".join(_sections(groups))


def _sections(groups: dict[str, list[str]]) -> Iterator[str]:
    yield INTRODUCTION
    for group, names in groups.items():
        yield f"\n## {group}\n"
        yield from (f"\n::: lmwire.{name}\n" for name in names)


def _group(value: Any) -> str:
    if is_typeddict(value):
        return "Options"
    if not inspect.isclass(value):
        return "Functions and constants"
    return "Errors" if issubclass(value, BaseException) else "Workers and answers"
