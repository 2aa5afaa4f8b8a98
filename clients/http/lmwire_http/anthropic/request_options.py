"""The bodies' fields as options of the worker's."""

import json
from typing import Any, Final

from lmwire import ToolDict

from .request_schema import ChooseAny, ChooseNone, ChooseTool, Messages, Prompt, ThinkingAdaptive, ThinkingEnabled, Tool

_TEMPERATURE: Final = 1.0
"""Anthropic's default. The wire's is 0."""
_TEMPLATE: Final = ("chat_template", "template_args")
_SAME: Final = (
    "max_tokens",
    "min_tokens",
    "ignore_eos",
    "top_p",
    "top_k",
    "min_p",
    "xtc_probability",
    "xtc_threshold",
    "repetition_penalty",
    "presence_penalty",
    "frequency_penalty",
    "penalty_window",
    "logit_bias",
    "seed",
    "include_stop",
    "truncate",
    "cache",
    "timeout_ms",
)
"""Options that are called the same on the wire."""


def prompt_options(body: Prompt) -> dict[str, Any]:
    """What changes the prompt besides its messages, as `lmwire.TemplateOptions`."""
    options = _given(body, _TEMPLATE) | _thinking(body)
    if body.tools and not isinstance(body.tool_choice, ChooseNone):
        options["tools"] = [_tool(tool) for tool in body.tools]
    return options


def chat_options(body: Messages) -> dict[str, Any]:
    """Everything but the messages, as `lmwire.ChatOptions`."""
    options = prompt_options(body) | _given(body, _SAME) | _calling(body)
    options["temperature"] = _TEMPERATURE if body.temperature is None else body.temperature
    options["strict_media"] = body.strict_media is not False
    if isinstance(body.thinking, ThinkingEnabled):
        options["reasoning_budget"] = body.thinking.budget_tokens
    if body.stop_sequences:
        options["stop"] = body.stop_sequences
    if body.output_config and body.output_config.format:
        options["format"] = {"type": "json_schema", "schema": body.output_config.format.schema}
    return options


def shows_thinking(body: Messages) -> bool:
    """Whether the answer has the text of thoughts."""
    return not (isinstance(body.thinking, ThinkingEnabled | ThinkingAdaptive) and body.thinking.display == "omitted")


def _given(body: Prompt, names: tuple[str, ...]) -> dict[str, Any]:
    return {name: value for name in names if (value := getattr(body, name)) is not None}


def _calling(body: Messages) -> dict[str, Any]:
    choice = body.tool_choice
    if choice is None or isinstance(choice, ChooseNone):
        return {}
    options: dict[str, Any] = {"parallel_tool_calls": False} if choice.disable_parallel_tool_use else {}
    if isinstance(choice, ChooseTool):
        options["tool_choice"] = {"name": choice.name}
    elif isinstance(choice, ChooseAny):
        options["tool_choice"] = "required"
    return options


def _thinking(body: Prompt) -> dict[str, Any]:
    if body.thinking is None or isinstance(body.thinking, ThinkingAdaptive):
        return {}
    return {"reasoning": "on" if isinstance(body.thinking, ThinkingEnabled) else "off"}


def _tool(tool: Tool) -> ToolDict:
    examples = "".join(f"\nExample of its input: {json.dumps(example)}" for example in tool.input_examples or ())
    return {
        "type": "function",
        "function": {
            "name": tool.name,
            "description": (tool.description or "") + examples,
            "parameters": tool.input_schema,
            "strict": bool(tool.strict),
        },
    }
