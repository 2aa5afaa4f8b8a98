"""Options that the operator sets for all requests of a server."""

from typing import Any, Final

from ..settings import Settings

_REASONING_VARIABLES: Final = ("enable_thinking", "thinking", "reasoning_effort", "thinking_budget")
"""Variables of chat templates with which requests can turn reasoning on or off."""


def default_options(settings: Settings) -> dict[str, Any]:
    """Return the options of a generation that hold unless its request sets them."""
    return {} if settings.default_max_tokens is None else {"max_tokens": settings.default_max_tokens}


def apply_server_defaults(options: dict[str, Any], settings: Settings) -> None:
    """Add the server's defaults to a request's options. What the request says wins, unless the operator forces it.

    Args:
        options: The request as `lmwire.ChatOptions` or `lmwire.TemplateOptions`, which are changed.
        settings: The server's settings.
    """
    if settings.strict_tools:
        for tool in options.get("tools", ()):
            tool["function"].setdefault("strict", True)
    if settings.reasoning is None:
        return
    if settings.force_reasoning:
        _remove_reasoning(options)
    if not options.get("template_args", {}).keys() & set(_REASONING_VARIABLES):
        options.setdefault("reasoning", settings.reasoning)


def _remove_reasoning(options: dict[str, Any]) -> None:
    """Remove what a request says about reasoning, except its budget."""
    options.pop("reasoning", None)
    if "template_args" in options:
        given = options["template_args"].items()
        options["template_args"] = {name: value for name, value in given if name not in _REASONING_VARIABLES}
