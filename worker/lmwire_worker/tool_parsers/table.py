"""The table of formats: the markers of every way to write tool calls, and what reads what stands between them.

Harmony (gpt-oss) has messages rather than sections. A message to a tool is the section, and looks like one of

    <|channel|>commentary to=functions.NAME <|constrain|>json<|message|>{...}<|call|>
    <|start|>assistant to=functions.NAME<|channel|>commentary json<|message|>{...}<|call|>

The table's `start` is "<|channel|>commentary to=", which is how nearly all begin, and its `end` is "<|call|>". That is
an end-of-turn token, so mostly the turn ends instead. Whoever splits harmony's messages anyway can recognise a call by
" to=" in a message's header (before <|message|>), in whatever channel, and give the reader the header from anywhere
before the name on, then <|message|> and the body: "functions.NAME <|constrain|>json<|message|>{...}" and
" to=functions.NAME<|channel|>commentary json<|message|>{...}" are both read.
"""

from collections.abc import Callable, Sequence
from functools import partial
from types import ModuleType
from typing import Final

from mlx_lm.tokenizer_utils import TokenizerWrapper
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

from .format import CallReader, ToolFormat
from .gemma_calls import GemmaCalls
from .json_calls import HarmonyCalls, JsonCalls, KimiCalls, LlamaCalls, MistralCalls
from .python_calls import PythonCalls
from .tagged_calls import TaggedCalls, Tags

_Reader = Callable[[Sequence[Tool]], CallReader]


def _of_mlx_lm(module: ModuleType, reader: _Reader) -> ToolFormat:
    return ToolFormat(module.__name__.rpartition(".")[2], module.tool_call_start, module.tool_call_end, reader)


def _key_value(module: ModuleType, prefix: str = "") -> _Reader:
    """`f<arg_key>city</arg_key><arg_value>Paris</arg_value>`, the tags with a prefix or without."""
    key, value = f"{prefix}arg_key", f"{prefix}arg_value"
    tags = Tags(
        module.parse_tool_call,
        call=rf"\A\s*(?P<function>[^\s<]+)\s*(?=<{key}>)",
        parameter=rf"<{key}>(?P<parameter>[^<]+)</{key}>(?:\\n|\s)*<{value}>",
        parameter_end=f"</{value}>",
        untagged=True,
        trims=r"\s*",
    )
    return partial(TaggedCalls, tags)


def _parse_minicpm5(text: str, tools: list[dict[str, object]]) -> object:
    """mlx-lm's parser, except where it would cut a value short: at a closing tag inside its CDATA block."""
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
        _of_mlx_lm(function_gemma, partial(GemmaCalls, "<escape>")),
        _of_mlx_lm(gemma4, partial(GemmaCalls, '<|"|>')),
        _of_mlx_lm(glm47, _key_value(glm47)),
        _of_mlx_lm(json_tools, JsonCalls),
        _of_mlx_lm(kimi_k2, KimiCalls),
        _of_mlx_lm(kimi_k3, partial(TaggedCalls, _KIMI_K3)),
        _of_mlx_lm(laguna, _key_value(laguna)),
        _of_mlx_lm(longcat, _key_value(longcat, "longcat_")),
        _of_mlx_lm(minicpm5, partial(TaggedCalls, _MINICPM)),
        _of_mlx_lm(minimax_m2, partial(TaggedCalls, _MINIMAX)),
        _of_mlx_lm(mistral, MistralCalls),
        _of_mlx_lm(muse_spark, partial(TaggedCalls, _MUSE)),
        _of_mlx_lm(pythonic, PythonCalls),
        _of_mlx_lm(qwen3_coder, partial(TaggedCalls, _QWEN)),
        ToolFormat("harmony", "<|channel|>commentary to=", "<|call|>", HarmonyCalls),
        ToolFormat("llama3_json", "<|python_tag|>", "", LlamaCalls, bare=True),
        ToolFormat("gemma3_code", "```tool_code", "\n```", PythonCalls),
    )
}
"""Every format by its name."""

_SIGNS: Final = {
    "<tool_call>": "json_tools",
    "<|python_tag|>": "llama3_json",
    '{"name": function name, "parameters":': "llama3_json",
}
"""What tells the format in a template that mlx-lm knows no parser for."""


def find_format(tokenizer: TokenizerWrapper, model_type: str) -> ToolFormat:
    """How a model writes its tool calls: as mlx-lm infers it, or in one of the formats that it does not know.

    A model whose own way is unknown, or that has none, can be told in the prompt how to write them: in Python, which
    Gemma is used to, or in JSON.
    """
    if tokenizer.tool_parser is not None:
        name = tokenizer.tool_parser.__module__.rpartition(".")[2]
        if name in FORMATS:
            return FORMATS[name]
    if model_type == "gpt_oss":
        return FORMATS["harmony"]
    templates = tokenizer.chat_template or ""
    template = templates if isinstance(templates, str) else "".join(templates.values())
    for sign, name in _SIGNS.items():
        if sign in template:
            return FORMATS[name]
    return FORMATS["gemma3_code" if model_type.startswith("gemma") else "json_tools"]
