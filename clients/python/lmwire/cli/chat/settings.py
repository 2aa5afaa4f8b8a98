"""The request fields that `/set` changes, with the types of their values."""

from typing import Any, Final

SETTINGS: Final[dict[str, type[int] | type[float] | type[str]]] = {
    "max_tokens": int,
    "temperature": float,
    "top_p": float,
    "top_k": int,
    "min_p": float,
    "repetition_penalty": float,
    "presence_penalty": float,
    "frequency_penalty": float,
    "seed": int,
    "reasoning": str,
    "reasoning_effort": str,
    "reasoning_budget": int,
}
_RESETS: Final = ("default", "none")


def change_setting(fields: dict[str, Any], name: str, text: str) -> str:
    """Change a field of the next requests, and return a sentence about it. The worker checks the value.

    Args:
        fields: The fields of each request.
        name: The field's name, with underscores or dashes.
        text: The value; `default` removes the field.

    Raises:
        ValueError: A sentence about an unknown name, or a value of another type.
    """
    name = name.replace("-", "_")
    if name not in SETTINGS:
        raise ValueError(f"{name} is not a setting; the settings are {', '.join(SETTINGS)}")
    if text.lower() in _RESETS:
        fields.pop(name, None)
        return f"{name} is the default."
    try:
        fields[name] = SETTINGS[name](text)
    except ValueError:
        kind = "a whole number" if SETTINGS[name] is int else "a number"
        raise ValueError(f"{name} needs {kind}, or default, not {text!r}") from None
    return f"{name} is {fields[name]}."


def describe_settings(fields: dict[str, Any]) -> str:
    """Return the settings that are not the default, for a person to read.

    Args:
        fields: The fields of each request.
    """
    given = [f"{name} = {fields[name]}" for name in SETTINGS if name in fields]
    return "\n".join(given) or "All settings are the default. /set NAME VALUE changes one, such as temperature."
