"""Prompts of small conversations, in the chat templates of `chat_templates`."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import lmwire_worker
from lmwire_protocol import CalledTool, Chat, Function, Message, Tokenize, Tool
from lmwire_worker.text.prompts import Prompt, read_prompt
from lmwire_worker.text.tools import ToolFormat

VOCABULARY = 2**20
WEATHER = Tool(
    function=Function(
        name="get_weather",
        description="Tells the weather.",
        parameters={
            "type": "object",
            "properties": {"city": {"type": "string", "description": "Where."}, "days": {"type": "integer"}},
            "required": ["city"],
        },
    )
)


@dataclass(frozen=True)
class Marks:
    """What prompts need of a model's syntax."""

    think_start: str | None = None
    think_end: str | None = None
    tools: ToolFormat | None = None

    @property
    def thinks(self) -> bool:
        return self.think_start is not None


def _unread(_: object) -> Any:
    raise AssertionError("prompts read no calls")


THINK = Marks("<think>", "</think>")
HARMONY_THOUGHT = ("<|channel|>analysis<|message|>", "<|end|>")
JSON_TOOLS = ToolFormat("json_tools", "<tool_call>", "</tool_call>", _unread)
LLAMA_TOOLS = ToolFormat("llama3_json", "<|python_tag|>", "", _unread, bare=True)
MISTRAL_TOOLS = ToolFormat("mistral", "[TOOL_CALLS]", "", _unread)
HARMONY_TOOLS = ToolFormat("harmony", "<|channel|>commentary to=", "<|call|>", _unread)
GEMMA_TOOLS = ToolFormat("gemma3", "```tool_code", "```", _unread)


@cache
def tokenizer(template: str | None) -> Any:
    """The built-in model's, with another chat template. Its texts come back from its tokens as they are."""
    from pathlib import Path

    from mlx_lm.tokenizer_utils import load

    found: Any = load(Path(lmwire_worker.__file__).parent / "builtin" / "tiny")
    if template is not None:
        found.chat_template = template
        found.bos_token = "<bos>"
    return found


def prompt(template: str | None, *messages: Message, marks: Marks = THINK, **fields: Any) -> Prompt:
    """A chat's prompt. The template None is the built-in model's own."""
    request = Chat(messages=list(messages), **fields)
    return read_prompt(request, tokenizer(template), VOCABULARY, marks)  # pyright: ignore[reportArgumentType]


def tokenized(template: str | None, **fields: Any) -> Prompt:
    request = Tokenize(**fields)
    marks = Marks(THINK.think_start, THINK.think_end, JSON_TOOLS)
    return read_prompt(request, tokenizer(template), VOCABULARY, marks)  # pyright: ignore[reportArgumentType]


def _of(role: Any) -> Callable[..., Message]:
    return lambda content=None, **fields: Message(role=role, content=content, **fields)


system, developer, user, assistant = _of("system"), _of("developer"), _of("user"), _of("assistant")


def result(content: str, call_id: str = "call_1") -> Message:
    return Message(role="tool", content=content, tool_call_id=call_id)


def call(city: str = "Paris", call_id: str = "call_1", **more: Any) -> CalledTool:
    return CalledTool(id=call_id, name="get_weather", arguments={"city": city, **more})
