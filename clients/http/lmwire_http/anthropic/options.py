"""Requests as options of the client library."""

from typing import Any, Final

from lmwire import ChatOptions, TemplateOptions

from ..http.unknown_fields import UnknownFields
from ..inference.options import REPETITION_FIELDS, given_fields, repetition_options, shared_fields, token_biases
from .request import (
    ChooseAny,
    ChooseNone,
    ChooseTool,
    CountTokensRequest,
    MessagesRequest,
    ThinkingAdaptive,
    ThinkingEnabled,
)
from .tool_set import ToolSet

_NO_EDIT: Final = ("clear_thinking_20251015", "all")
_PROMPT_OPTIONS: Final = shared_fields(CountTokensRequest, TemplateOptions, converted=("tools",))
_CHAT_OPTIONS: Final = shared_fields(
    MessagesRequest,
    ChatOptions,
    converted=("temperature", "tools", "tool_choice", "strict_media", "logit_bias", *REPETITION_FIELDS),
)


def prompt_options(body: CountTokensRequest, tools: ToolSet, unknown: UnknownFields) -> dict[str, Any]:
    """Return the options that change the prompt, as `lmwire.TemplateOptions`.

    Args:
        body: The request's body.
        tools: Its tools.
        unknown: Reports the edits of the conversation that are left out.

    Raises:
        ApiError: The server refuses such edits.
    """
    for number, edit in enumerate(body.context_management.edits if body.context_management else ()):
        if (edit.type, edit.keep) != _NO_EDIT:
            unknown.leave_out(f"context_management.edits[{number}]", edit.type)
    return given_fields(body, *_PROMPT_OPTIONS) | _reasoning_options(body) | tools.options()


def chat_options(body: MessagesRequest, tools: ToolSet, unknown: UnknownFields) -> dict[str, Any]:
    """Return all options except the messages, as `lmwire.ChatOptions`.

    Args:
        body: The request's body.
        tools: Its tools.
        unknown: See `prompt_options`.

    Raises:
        ApiError: A logit bias or a sequence breaker is invalid; see also `prompt_options`.
    """
    options = prompt_options(body, tools, unknown) | given_fields(body, *_CHAT_OPTIONS) | _tool_choice_options(body)
    options |= {**token_biases(body.logit_bias), **repetition_options(body)}
    if body.temperature is not None:
        options["temperature"] = body.temperature
    options["strict_media"] = body.strict_media is True
    if isinstance(body.thinking, ThinkingEnabled):
        options["reasoning_budget"] = body.thinking.budget_tokens
    if body.stop_sequences:
        options["stop"] = body.stop_sequences
    if body.output_config and body.output_config.format:
        options["format"] = {"type": "json_schema", "schema": body.output_config.format.schema}
    return options


def shows_thinking(body: MessagesRequest) -> bool:
    """Return whether the answer includes the text of the reasoning."""
    return not (isinstance(body.thinking, ThinkingEnabled | ThinkingAdaptive) and body.thinking.display == "omitted")


def thinking_of(enabled: Any) -> dict[str, Any]:
    """Turn reasoning on for true, off for false.

    Raises:
        ValueError: The switch is neither true nor false.
    """
    if not isinstance(enabled, bool):
        raise ValueError("must be true or false")
    return {"thinking": {"type": "adaptive" if enabled else "disabled"}}


def _tool_choice_options(body: MessagesRequest) -> dict[str, Any]:
    choice = body.tool_choice
    if choice is None or isinstance(choice, ChooseNone):
        return {}
    options: dict[str, Any] = {"parallel_tool_calls": False} if choice.disable_parallel_tool_use else {}
    if isinstance(choice, ChooseTool):
        options["tool_choice"] = {"name": choice.name}
    elif isinstance(choice, ChooseAny):
        options["tool_choice"] = "required"
    return options


def _reasoning_options(body: CountTokensRequest) -> dict[str, Any]:
    """Return the options of reasoning. Anthropic's models do not reason before a call that the request demands."""
    effort = body.output_config.effort if body.output_config else None
    options = {} if effort is None else {"reasoning_effort": effort}
    if body.thinking is None and isinstance(body.tool_choice, ChooseAny | ChooseTool):
        return {"reasoning": "off"}
    if body.thinking is None or isinstance(body.thinking, ThinkingAdaptive):
        return options
    return options | {"reasoning": "on" if isinstance(body.thinking, ThinkingEnabled) else "off"}
