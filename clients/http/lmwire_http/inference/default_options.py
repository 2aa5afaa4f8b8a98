"""Options that a request leaves open: those of the operator, of the model and of the API."""

from typing import Any, Final

import msgspec

from lmwire_protocol import events

from ..settings import Settings

_TEMPERATURE: Final = 1.0
"""Default of OpenAI and Anthropic, which clients expect. The worker's default is 0."""
_REASONING_VARIABLES: Final = ("enable_thinking", "thinking", "reasoning_effort", "thinking_budget")
"""Variables of chat templates with which requests can turn reasoning on or off."""


def with_generation_defaults(
    options: dict[str, Any], settings: Settings, model: events.ModelDone, max_tokens: int | None
) -> dict[str, Any]:
    """Return a request's options with the defaults of every generation: of sampling and of the answer's length.

    Args:
        options: The request's options of the client library.
        settings: The server's settings.
        model: The model, whose own sampling defaults count if it was loaded with them.
        max_tokens: The API's limit; None if it has none.
    """
    limit = max_tokens if settings.default_max_tokens is None else settings.default_max_tokens
    defaults: dict[str, Any] = {"temperature": _TEMPERATURE}
    if model.sampling_defaults:
        defaults |= msgspec.to_builtins(model.sampling_defaults)
    if limit is not None:
        defaults["max_tokens"] = limit
    return {**defaults, **options}


def with_chat_defaults(options: dict[str, Any], settings: Settings) -> dict[str, Any]:
    """Return the options of a conversation with the operator's defaults for tools and reasoning.

    What the request says wins, unless the operator forces the reasoning.

    Args:
        options: The request as `lmwire.ChatOptions` or `lmwire.TemplateOptions`. Its tools are changed.
        settings: The server's settings.
    """
    if settings.strict_tools:
        for tool in options.get("tools", ()):
            tool["function"].setdefault("strict", True)
    if settings.reasoning is None:
        return {**options}
    if settings.force_reasoning:
        options = _without_reasoning(options)
    if options.get("template_args", {}).keys() & set(_REASONING_VARIABLES):
        return {**options}
    return {"reasoning": settings.reasoning, **options}


def _without_reasoning(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options without what they say about reasoning, except its budget."""
    remaining = {name: value for name, value in options.items() if name != "reasoning"}
    if "template_args" in remaining:
        given = remaining["template_args"].items()
        remaining["template_args"] = {name: value for name, value in given if name not in _REASONING_VARIABLES}
    return remaining
