"""Requests as options of the client library, and their names in errors."""

from typing import Any, Final

from lmwire import ToolDict
from lmwire_protocol import JsonObjectFormat, JsonSchemaFormat

from ..errors import invalid_field
from ..inference.options import effort_options, given_fields
from .request_schema import AnswerRequest, OllamaOptions, Tool

_SEED_COUNT: Final = 2**53
_SAME_NAME: Final = ("temperature", "top_p", "min_p", "presence_penalty", "frequency_penalty")
_SCHEMA: Final = "format.schema"
_RENAMED: Final = {
    "max_tokens": "options.num_predict",
    "repetition_penalty": "options.repeat_penalty",
    "penalty_window": "options.repeat_last_n",
    "reasoning": "think",
    "reasoning_budget": "think",
    **{name: f"options.{name}" for name in (*_SAME_NAME, "top_k", "seed", "stop")},
}


def generation_options(body: AnswerRequest) -> dict[str, Any]:
    """Return the options of a generation, as `lmwire.GenerateOptions`.

    Raises:
        ApiError: Fields contradict each other.
    """
    options = _sampling_options(body.options or OllamaOptions())
    if body.format == "json":
        options["format"] = JsonObjectFormat()
    elif body.format:
        options["format"] = JsonSchemaFormat(schema=body.format)
    if body.top_logprobs and not body.logprobs:
        raise invalid_field("top_logprobs: needs `logprobs`: true", "top_logprobs")
    return options | given_fields(body, "logprobs", "top_logprobs")


def chat_options(body: AnswerRequest, tools: list[Tool] | None = None) -> dict[str, Any]:
    """Return the options of an answer to a conversation, as `lmwire.ChatOptions`.

    Args:
        body: The request's body.
        tools: Its tools.

    Raises:
        ApiError: Fields contradict each other.
    """
    options = {**generation_options(body), "strict_media": body.strict_media is True}
    if isinstance(body.think, bool):
        options["reasoning"] = "on" if body.think else "off"
    elif body.think is not None:
        options |= effort_options(body.think)
    if tools:
        options["tools"] = [_wire_tool(tool) for tool in tools]
    return options


def client_field(field: str) -> str:
    """Return the client's name of a worker's field that is not a part of the prompt."""
    if field.startswith(_SCHEMA):
        return "format" + field.removeprefix(_SCHEMA)
    head, bracket, rest = field.partition("[")
    return _RENAMED[head] + bracket + rest if head in _RENAMED else field


def _sampling_options(given: OllamaOptions) -> dict[str, Any]:
    options = given_fields(given, *_SAME_NAME)
    if given.num_predict is not None and given.num_predict >= 0:
        options["max_tokens"] = given.num_predict
    if given.top_k is not None:
        options["top_k"] = max(0, given.top_k)
    if given.seed is not None and given.seed >= 0:
        options["seed"] = given.seed % _SEED_COUNT
    if given.stop is not None:
        options["stop"] = [given.stop] if isinstance(given.stop, str) else given.stop
    return options | _penalty_options(given)


def _penalty_options(given: OllamaOptions) -> dict[str, Any]:
    options: dict[str, Any] = {}
    if given.repeat_penalty is not None:
        options["repetition_penalty"] = given.repeat_penalty
    if given.repeat_last_n == 0:
        return {"repetition_penalty": 1.0, "presence_penalty": 0.0, "frequency_penalty": 0.0}
    if given.repeat_last_n is not None:
        options["penalty_window"] = max(0, given.repeat_last_n)
    return options


def _wire_tool(tool: Tool) -> ToolDict:
    fields: Any = given_fields(tool.function, "name", "description", "parameters")
    return {"type": "function", "function": fields}
