"""Checks of the Structs beyond the types of their fields, as far as JSON Schema can express them."""

from typing import Any, Final

import msgspec

from . import commands, messages

Json = dict[str, Any]


def _when(fields: Json, then: Json, otherwise: Json | None = None) -> Json:
    """Return a condition: `then` must hold if these fields are present and valid, `otherwise` if not."""
    return {"if": {"properties": fields, "required": list(fields)}, "then": then, "else": otherwise or {}}


def _one_of(*fields: str) -> Json:
    """Return a condition: exactly one of these fields is present."""
    return {"oneOf": [{"required": [field]} for field in fields]}


def _function_or(*fields: str) -> Json:
    """Return a condition: either `function` is present, or all of these fields are."""
    return {
        "if": {"required": ["function"]},
        "then": {"properties": dict.fromkeys(fields, False)},
        "else": {"required": list(fields)},
    }


_CLOSED_IF_CONTINUED: Final = _when(
    {"continue_final_message": {"const": True}},
    {"required": ["add_generation_prompt"], "properties": {"add_generation_prompt": {"const": False}}},
)
_SOME_TOOLS: Final = {"required": ["tools"], "properties": {"tools": {"minItems": 1}}}
CONDITIONS: Final[dict[type[msgspec.Struct], list[Json]]] = {
    commands.Load: [
        {"dependentRequired": {"reasoning_start": ["reasoning_end"], "reasoning_end": ["reasoning_start"]}}
    ],
    commands.Generation: [
        {"properties": {"logit_bias": {"propertyNames": {"pattern": "^(0|[1-9][0-9]{0,15})$"}}}},
        _when(
            {"top_logprobs": {"minimum": 1}}, {"required": ["logprobs"], "properties": {"logprobs": {"const": True}}}
        ),
    ],
    commands.Generate: [
        _when({"suffix": True}, {"properties": {"prompt": {"type": "string"}}}),
        _when({"context_files": {"minItems": 1}}, {"required": ["suffix"]}),
    ],
    commands.Chat: [
        _CLOSED_IF_CONTINUED,
        _when({"tool_choice": {"const": "required"}}, _SOME_TOOLS),
        _when({"tool_choice": {"type": "object"}}, _SOME_TOOLS),
    ],
    commands.Tokenize: [
        _one_of("prompt", "messages", "token_ids"),
        _CLOSED_IF_CONTINUED,
        _when(
            {"messages": True},
            {},
            {
                "properties": {
                    "tools": {"maxItems": 0},
                    "chat_template": False,
                    "template_args": {"maxProperties": 0},
                    "add_generation_prompt": {"const": True},
                    "continue_final_message": {"const": False},
                    "prefix": {"maxLength": 0},
                    "reasoning": {"const": "auto"},
                    "reasoning_effort": False,
                }
            },
        ),
        _when({"prompt": True}, {}, {"properties": {"add_special_tokens": {"const": True}}}),
    ],
    commands.Cancel: [_one_of("target", "all")],
    messages.Media: [_one_of("data", "path", "url")],
    messages.CalledTool: [_function_or("name", "arguments")],
    messages.NamedTool: [_function_or("name")],
    messages.Message: [
        _when(
            {"role": {"const": "assistant"}},
            {},
            {"properties": {"reasoning": {"maxLength": 0}, "tool_calls": {"maxItems": 0}}},
        ),
        _when(
            {"role": {"const": "tool"}},
            {"properties": {"tool_call_id": {"minLength": 1}}},
            {"properties": {"tool_call_id": False}},
        ),
        {
            "anyOf": [
                {"required": ["content"]},
                {"required": ["tool_calls"], "properties": {"tool_calls": {"minItems": 1}}},
            ]
        },
    ],
}
"""Conditions by Struct. They hold for its subclasses too."""
