"""The type of decoded JSON. Modules import it for type checks only, to keep the start of a process short."""

from typing import TypeAlias

JsonValue: TypeAlias = "bool | int | float | str | list[JsonValue] | dict[str, JsonValue] | None"
