"""Tiny vision models whose tokens and chat template support reasoning and tool calls; their text is random."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from lmwire_protocol import Function, Tool
from random_vision import FAMILIES, write_vision_model

THINK, THOUGHT, CALL, CALLED = "<think>", "</think>", "<tool_call>", "</tool_call>"
_MARKS: Final = {
    "<fake_token_around_image>": THINK,
    "<image>": THOUGHT,
    "<global-img>": CALL,
    "<end_of_utterance>": CALLED,
}
"""New texts for tokens of SmolVLM, which are also in other families' vocabularies but are not used there."""
_TEMPLATE: Final = """
{%- macro said(content) %}
    {%- if content is string %}{{- content }}
    {%- else %}{%- for part in content %}{{- 'PLACE' if part.type == 'image' else part.text }}{%- endfor %}
    {%- endif %}
{%- endmacro %}
{%- if tools %}
    {{- '<|im_start|>system\\n<tools>' }}
    {%- for tool in tools %}{{- '\\n' + (tool | tojson) }}{%- endfor %}
    {{- '\\n</tools>\\nReply with <tool_call>\\n{"name": <name>, "arguments": <object>}\\n</tool_call><|im_end|>\\n' }}
{%- endif %}
{%- for message in messages %}
    {{- '<|im_start|>' + message.role + '\\n' }}
    {{- '<think>\\n' + message.reasoning_content + '\\n</think>\\n\\n' if message.reasoning_content }}
    {{- said(message.content) if message.content }}
    {%- for tool_call in message.tool_calls or [] %}
        {{- '<tool_call>\\n{"name": "' + tool_call.function.name + '", "arguments": ' }}
        {{- (tool_call.function.arguments | tojson) + '}\\n</tool_call>' }}
    {%- endfor %}
    {{- '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
    {{- '<think>\\n\\n</think>\\n\\n' if enable_thinking is defined and enable_thinking is false }}
{%- endif %}
"""

_CITY: Final = {"enum": ["Rome", "Paris"]}
_NOTHING: Final = {"type": "object", "properties": {}, "additionalProperties": False}
WEATHER: Final = Tool(
    function=Function(name="get_weather", parameters=_NOTHING | {"properties": {"city": _CITY}, "required": ["city"]})
)
TIME: Final = Tool(function=Function(name="get_time", parameters=_NOTHING))
TOOLS: Final = [WEATHER, TIME]


def write_talking_vision_model(folder: Path, family: str) -> Path:
    """Write a model of any family but SmolVLM to a new folder, and return the folder."""
    write_vision_model(folder, family)
    rename_placeholders(folder, _MARKS)
    config = folder / "tokenizer_config.json"
    template = _TEMPLATE.replace("PLACE", FAMILIES[family]["place"])
    config.write_text(json.dumps(json.loads(config.read_text()) | {"chat_template": template}))
    return folder


def rename_placeholders(folder: Path, names: Mapping[str, str]) -> None:
    """Change the texts of tokens in a model's tokenizer."""
    file = folder / "tokenizer.json"
    text = file.read_text()
    for old, new in names.items():
        text = text.replace(json.dumps(old), json.dumps(new))
    file.write_text(text)
