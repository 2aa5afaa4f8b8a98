"""Prompts of small conversations, in the chat templates of `chat_templates`."""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from msgspec.structs import replace

import lmwire_worker
from lmwire_protocol import CalledTool, Chat, Function, Message, Tokenize, Tool
from lmwire_worker.models.tokenizer_loading import load_tokenizer
from lmwire_worker.output_parsing import FAMILIES, Syntax
from lmwire_worker.prompts.builder import Prompt, build_prompt
from lmwire_worker.prompts.tokenization import Encoder
from lmwire_worker.tool_parsers import FORMATS

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


@cache
def tokenizer(template: str | None) -> Any:
    """The built-in model's, with another chat template. Its texts come back from its tokens as they are."""
    found = load_tokenizer(Path(lmwire_worker.__file__).parent / "builtin" / "tiny", {}, trust_remote_code=False)
    if template is not None:
        found.chat_template = template
        found.special_tokens_map["bos_token"] = "<bos>"
    return found


def _syntax(tools: str | None = None, *, thinks: bool = False) -> Syntax:
    thought = ("<think>", "</think>") if thinks else (None, None)
    found = Syntax.of(tokenizer(None), "", FORMATS[tools] if tools else None)
    return replace(found, think_start=thought[0], think_end=thought[1])


PLAIN = _syntax()
QWEN = _syntax("json_tools", thinks=True)
LLAMA = _syntax("llama3_json")
GEMMA = _syntax("gemma3_code")
MISTRAL_MARKS = _syntax("mistral")
FOLDED = _syntax("json_tools")
_HARMONY = FAMILIES["harmony"]
HARMONY = Syntax(_HARMONY.states, _HARMONY.initial, *(_HARMONY.reasoning or (None, None)), FORMATS["harmony"])


def prompt(template: str | None, *messages: Message, syntax: Syntax = QWEN, **fields: Any) -> Prompt:
    """A chat's prompt. The template None is the built-in model's own."""
    request = Chat(messages=list(messages), **fields)
    return build_prompt(request, Encoder(tokenizer(template)), VOCABULARY, syntax)


def tokenized(template: str | None, **fields: Any) -> Prompt:
    return build_prompt(Tokenize(**fields), Encoder(tokenizer(template)), VOCABULARY, QWEN)


def _of(role: Any) -> Callable[..., Message]:
    return lambda content=None, **fields: Message(role=role, content=content, **fields)


system, developer, user, assistant = _of("system"), _of("developer"), _of("user"), _of("assistant")


def result(content: str, call_id: str = "call_1") -> Message:
    return Message(role="tool", content=content, tool_call_id=call_id)


def call(city: str = "Paris", call_id: str = "call_1", **more: Any) -> CalledTool:
    return CalledTool(id=call_id, name="get_weather", arguments={"city": city, **more})
