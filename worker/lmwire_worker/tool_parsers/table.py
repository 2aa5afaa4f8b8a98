"""The table of formats: the markers of each format of tool calls, and its parser.

Harmony (gpt-oss) has messages instead of sections. A message to a tool is a section, in one of these forms:

    <|channel|>commentary to=functions.NAME <|constrain|>json<|message|>{...}<|call|>
    <|start|>assistant to=functions.NAME<|channel|>commentary json<|message|>{...}<|call|>

The table's `start` is "<|channel|>commentary to=", which starts nearly all calls, and its `end` is "<|call|>". That is
an eos token, so that the turn usually ends instead. A caller that splits harmony's messages can also recognize a call
by " to=" in a message's header, on any channel. The parser accepts the header from any position before the name, then
<|message|> and the body: both "functions.NAME <|constrain|>json<|message|>{...}" and
" to=functions.NAME<|channel|>commentary json<|message|>{...}" are valid.
"""

from collections.abc import Callable, Sequence
from functools import partial
from types import ModuleType
from typing import Final

from mlx_lm.tool_parsers import (
    function_gemma,
    gemma4,
    glm47,
    json_tools,
    kimi_k2,
    kimi_k3,
    laguna,
    longcat,
    minicpm5,
    minimax_m2,
    mistral,
    muse_spark,
    pythonic,
    qwen3_coder,
)

from lmwire_protocol import Tool

from ..models.tokenizer import Tokenizer
from .format import ToolCallParser, ToolFormat
from .gemma_calls import GemmaParser
from .json_calls import HarmonyParser, JsonParser, KimiParser, LlamaParser, MistralParser
from .python_calls import PythonParser
from .tagged_calls import TaggedParser, Tags
from .tool_code_calls import ToolCodeParser

_MakeParser = Callable[[Sequence[Tool]], ToolCallParser]


def _of_mlx_lm(module: ModuleType, reader: _MakeParser) -> ToolFormat:
    return ToolFormat(module.__name__.rpartition(".")[2], module.tool_call_start, module.tool_call_end, reader)


def _key_value(module: ModuleType, prefix: str = "") -> _MakeParser:
    """Return a parser of `f<arg_key>city</arg_key><arg_value>Paris</arg_value>`, for tags with a prefix."""
    key, value = f"{prefix}arg_key", f"{prefix}arg_value"
    tags = Tags(
        module.parse_tool_call,
        call=rf"\A\s*(?P<function>[^\s<]+)\s*(?=<{key}>)",
        parameter=rf"<{key}>(?P<parameter>[^<]+)</{key}>(?:\\n|\s)*<{value}>",
        parameter_end=f"</{value}>",
        untagged=True,
        trims=r"\s*",
    )
    return partial(TaggedParser, tags)


def _parse_minicpm5(text: str, tools: list[dict[str, object]]) -> object:
    """Call mlx-lm's parser, unless a CDATA block is open: it would end the value at a closing tag inside the block."""
    if text.count("<![CDATA[") != text.count("]]>"):
        raise ValueError("a CDATA block is open")
    return minicpm5.parse_tool_call(text, tools)


_QWEN: Final = Tags(
    qwen3_coder.parse_tool_call,
    call=r"<function=\s*(?P<function>[^\s<>]+)(?:\s*>|\s+(?=[^\s>]))",
    parameter=r"<parameter=\s*(?P<parameter>[^\s<>]+)(?:\s*>|\s+(?=[^\s>]))",
    parameter_end="</parameter>",
    call_end="</function>",
    trims=r"\n?",
)
_MINIMAX: Final = Tags(
    minimax_m2.parse_tool_call,
    call=r"""<invoke name=["']?(?P<function>[^>"']+)["']?>""",
    parameter=r"""<parameter name=["']?(?P<parameter>[^>"']+)["']?>""",
    parameter_end="</parameter>",
    call_end="</invoke>",
    trims=r"\s*",
)
_MINICPM: Final = Tags(
    _parse_minicpm5,
    call=r"""\A\s*["']?(?P<function>[^\s"'<>]+)["']?\s*>""",
    parameter=r"""<param\s+name\s*=\s*["']?(?P<parameter>[^"'<>]+)["']?\s*>""",
    parameter_end="</param>",
)
_MUSE: Final = Tags(
    muse_spark.parse_tool_call,
    call=r'<atem:invoke\b[^>]*?\bname="(?P<function>[^"<>]+)">',
    parameter=r'<atem:parameter\b[^>]*?\bname="(?P<parameter>[^"<>]+)"[^>]*>',
    parameter_end="</atem:parameter>",
    call_end="</atem:invoke>",
)
_KIMI_K3: Final = Tags(
    kimi_k3.parse_tool_call,
    call=r'<\|open\|>call\s(?:(?!<\|sep\|>)[\s\S])*?\btool="(?P<function>[^"]+)"(?:(?!<\|sep\|>)[\s\S])*<\|sep\|>',
    parameter=r"<\|open\|>(?P<parameter>argument|json)\b(?:(?!<\|sep\|>)[\s\S])*<\|sep\|>",
    parameter_end=r"<\|close\|>(?:argument|json)<\|sep\|>",
    call_end="<|close|>call<|sep|>",
)

FORMATS: Final[dict[str, ToolFormat]] = {
    tool_format.name: tool_format
    for tool_format in (
        _of_mlx_lm(function_gemma, partial(GemmaParser, "<escape>")),
        _of_mlx_lm(gemma4, partial(GemmaParser, '<|"|>')),
        _of_mlx_lm(glm47, _key_value(glm47)),
        _of_mlx_lm(json_tools, JsonParser),
        _of_mlx_lm(kimi_k2, KimiParser),
        _of_mlx_lm(kimi_k3, partial(TaggedParser, _KIMI_K3)),
        _of_mlx_lm(laguna, _key_value(laguna)),
        _of_mlx_lm(longcat, _key_value(longcat, "longcat_")),
        _of_mlx_lm(minicpm5, partial(TaggedParser, _MINICPM)),
        _of_mlx_lm(minimax_m2, partial(TaggedParser, _MINIMAX)),
        _of_mlx_lm(mistral, MistralParser),
        _of_mlx_lm(muse_spark, partial(TaggedParser, _MUSE)),
        _of_mlx_lm(pythonic, PythonParser),
        _of_mlx_lm(qwen3_coder, partial(TaggedParser, _QWEN)),
        ToolFormat("harmony", "<|channel|>commentary to=", "<|call|>", HarmonyParser),
        ToolFormat("llama3_json", "<|python_tag|>", "", LlamaParser, bare=True),
        ToolFormat("gemma3_code", "```tool_code", "\n```", ToolCodeParser),
    )
}
"""All formats by name."""

_TEMPLATE_SIGNS: Final = {
    "<tool_call>": "json_tools",
    "<|python_tag|>": "llama3_json",
    '{"name": function name, "parameters":': "llama3_json",
}
"""Texts in chat templates that identify a format, if mlx-lm finds no parser for the template."""


def find_format(tokenizer: Tokenizer, model_type: str) -> ToolFormat:
    """Return the format of a model's tool calls: the one that mlx-lm infers, or one that mlx-lm does not know.

    If the model's format is unknown, or if it has none, the prompt can describe one: Python for Gemma, and JSON for
    other models.

    Args:
        tokenizer: The model's tokenizer.
        model_type: The `model_type` of the model's configuration.
    """
    name = tokenizer.tool_parser_type
    if name in FORMATS:
        return FORMATS[name]
    if model_type == "gpt_oss":
        return FORMATS["harmony"]
    templates = tokenizer.chat_template or ""
    template = templates if isinstance(templates, str) else "".join(templates.values())
    for sign, name in _TEMPLATE_SIGNS.items():
        if sign in template:
            return FORMATS[name]
    return FORMATS["gemma3_code" if model_type.startswith("gemma") else "json_tools"]
