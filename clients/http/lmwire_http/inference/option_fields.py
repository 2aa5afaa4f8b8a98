"""Fields of request bodies that are options of the client library."""

from typing import Any

from msgspec import Struct


def shared_fields(request_type: type[Struct], options_type: type, *, converted: tuple[str, ...]) -> tuple[str, ...]:
    """Return the fields of a request body that the client library takes under the same name with the same value.

    Args:
        request_type: The Struct of the body.
        options_type: The client library's TypedDict of options.
        converted: Fields of both whose values differ.
    """
    options = options_type.__annotations__.keys() - set(converted)
    return tuple(name for name in request_type.__struct_fields__ if name in options)


def given_fields(body: Struct, *names: str) -> dict[str, Any]:
    """Return the fields with these names that are not null."""
    return {name: value for name in names if (value := getattr(body, name)) is not None}
