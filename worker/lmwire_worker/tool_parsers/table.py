"""The table of formats: one record for each format of tool calls.

Harmony (gpt-oss) has messages instead of sections. A message to a tool is a section, in one of these forms:

    <|channel|>commentary to=functions.NAME <|constrain|>json<|message|>{...}<|call|>
    <|start|>assistant to=functions.NAME<|channel|>commentary json<|message|>{...}<|call|>

The table's `start` is "<|channel|>commentary to=", which starts nearly all calls, and its `end` is "<|call|>". That is
an eos token, so that the turn usually ends instead. A caller that splits harmony's messages can also recognize a call
by " to=" in a message's header, on any channel. The parser accepts the header from any position before the name, then
<|message|> and the body: both "functions.NAME <|constrain|>json<|message|>{...}" and
" to=functions.NAME<|channel|>commentary json<|message|>{...}" are valid.
"""

import re
from typing import Final

from lmwire_protocol.imports import lazy_pattern

from .format import ToolFormat
from .gemma_calls import GemmaCall
from .json_calls import (
    BareJsonParser,
    HarmonyParser,
    JsonCall,
    KimiParser,
    LlamaParser,
    MistralParser,
    NamedLineParser,
    NemoParser,
    RepeatedJsonParser,
)
from .literals import CALL_ID, NUMBER
from .nested_calls import NestedCall
from .python_calls import BarePythonParser, PythonCall
from .tagged_calls import TaggedCall
from .tool_code_calls import ToolCodeParser

_CONSTRAINED: Final = (" <|constrain|>json", "<|constrain|>json")
PATH_NAME: Final = lazy_pattern(r"[\w.-]+", re.ASCII)
"""Names that can stand unquoted before an object of arguments."""

_DEEPSEEK_RESULTS: Final = (
    "<｜tool▁outputs▁begin｜>",
    "<｜tool▁output▁begin｜>",
    "<｜tool▁output▁end｜>",
    "<｜tool▁outputs▁end｜>",
)
_MINIMAX_M3: Final = "]<]minimax[>["
_SEP: Final = r"(?:(?!<\|sep\|>)[\s\S])*"


def _key_value(prefix: str = "", suffix: str = "", line: str = "\n") -> TaggedCall:
    """Return the shape of `f<arg_key>city</arg_key><arg_value>Paris</arg_value>`, for tags with other names."""
    key, value = f"{prefix}arg_key{suffix}", f"{prefix}arg_value{suffix}"
    return TaggedCall(
        head=f"{{}}{line}",
        tag=f"<{key}>{{}}</{key}>{line}<{value}>",
        end=f"</{value}>{line}",
        excluded=(f"</{prefix}tool_call{suffix}>",),
        head_pattern=rf"\A\s*(?P<function>[^\s<]+)\s*(?=<{key}>)",
        tag_pattern=rf"<{key}>(?P<parameter>[^<]+)"
        rf"(?:<{value}>|</{key}>(?:\\n|\s)*(?:<{value}>|(?=[^<\s\\])))",
        untagged=True,
        recovers=not prefix,
    )


def _dsml(section: str, models: str) -> ToolFormat:
    """Return the format of DeepSeek's markup language with a name for its sections."""
    return ToolFormat(
        f"dsml_{section}",
        f"<｜DSML｜{section}>",
        f"</｜DSML｜{section}>",
        TaggedCall(
            head='<｜DSML｜invoke name="{}">\n',
            tag='<｜DSML｜parameter name="{}" string="{string}">',
            end="</｜DSML｜parameter>\n",
            tail="</｜DSML｜invoke>\n",
            excluded=(
                "</｜DSML｜invoke>",
                f"</｜DSML｜{section}>",
            ),
        ),
        before="\n",
        between_calls="",
        lost_starts=('<｜DSML｜invoke name="',),
        models=models,
    )


def _harmony(channel: str, *kinds: str) -> JsonCall:
    """Return the shape of a message to a function of gpt-oss.

    Args:
        channel: The header's channel, if it follows the recipient.
        kinds: The texts that may name the kind of the content. The first one is written.
    """
    first, *others = (f"{channel}{kind}<|message|>" for kind in (*kinds, ""))
    return JsonCall(
        "functions.", first, "", names=PATH_NAME, other_middles=tuple(others), spaced=False, parser=HarmonyParser
    )


def _hy3(name: str, suffix: str, models: str) -> ToolFormat:
    """Return the format of Hunyuan 3, whose tags have a suffix in the open models."""
    return ToolFormat(
        name,
        f"<tool_calls{suffix}>",
        f"</tool_calls{suffix}>",
        TaggedCall(
            head=f"<tool_call{suffix}>{{}}<tool_sep{suffix}>\n",
            tag=f"<arg_key{suffix}>{{}}</arg_key{suffix}>\n<arg_value{suffix}>",
            end=f"</arg_value{suffix}>\n",
            tail=f"</tool_call{suffix}>",
            excluded=(f"</tool_calls{suffix}>",),
        ),
        before="\n",
        between_calls="\n",
        after="\n",
        lost_starts=(f"<tool_call{suffix}>",),
        models=models,
    )


FORMATS: Final[dict[str, ToolFormat]] = {
    tool_format.name: tool_format
    for tool_format in (
        # One or more JSON objects between markers.
        ToolFormat(
            "json_tools",
            "<tool_call>",
            "</tool_call>",
            JsonCall(),
            before="\n",
            after="\n",
            between_sections="\n",
            models="Hermes, Qwen 2.5 and 3, Granite 4, ERNIE, Reka",
        ),
        ToolFormat(
            "command_r7b",
            "<|START_ACTION|>",
            "<|END_ACTION|>",
            JsonCall(f'{{"tool_call_id": "{NUMBER}", "tool_name": ', ', "parameters": '),
            before="[\n    ",
            between_calls=",\n    ",
            after="\n]",
            models="Command R7B, Command A",
        ),
        ToolFormat(
            "command_r",
            "Action:\n```json\n",
            "\n```",
            JsonCall('{\n        "tool_name": ', ',\n        "parameters": ', "\n    }"),
            before="[\n    ",
            between_calls=",\n    ",
            after="\n]",
            models="Command R, Command R+",
        ),
        ToolFormat(
            "nemotron_v2",
            "<TOOLCALL>",
            "</TOOLCALL>",
            JsonCall(),
            before="[",
            between_calls=", ",
            after="]",
            models="Nemotron Nano v2",
        ),
        ToolFormat(
            "tool_calls_list",
            "<tool_calls>",
            "</tool_calls>",
            JsonCall(),
            before="[",
            between_calls=", ",
            after="]",
            models="Apriel, Jamba, Hunyuan A13B, MiniMax M1",
        ),
        ToolFormat(
            "phi4_mini",
            "<|tool_call|>",
            "<|/tool_call|>",
            JsonCall(),
            before="[",
            between_calls=", ",
            after="]",
            lost_starts=("functools[",),
            models="Phi-4-mini",
        ),
        ToolFormat(
            "granite_20b",
            "<function_call>",
            "",
            JsonCall(parser=RepeatedJsonParser),
            before=" ",
            between_sections="\n",
            models="Granite 20B function calling",
        ),
        ToolFormat(
            "granite3",
            "<|tool_call|>",
            "",
            JsonCall(),
            before="[",
            between_calls=", ",
            after="]",
            lost_starts=("<tool_call>",),
            models="Granite 3",
        ),
        ToolFormat(
            "internlm",
            "<|action_start|><|plugin|>",
            "<|action_end|>",
            JsonCall(middle=', "parameters": '),
            after="\n",
            models="InternLM 2 and 3",
        ),
        ToolFormat("gigachat3", "<|message_sep|>\n\nfunction call<|role_sep|>\n", "", JsonCall(), models="GigaChat 3"),
        ToolFormat("gigachat3_1", "<|function_call|>", "", JsonCall(), models="GigaChat 3.1"),
        ToolFormat(
            "firefunction", "functools[", "", JsonCall(), between_calls=", ", after="]", models="FireFunction v2"
        ),
        ToolFormat(
            "llama3_json",
            "<|python_tag|>",
            "",
            JsonCall(middle=', "parameters": ', parser=LlamaParser),
            bare=True,
            models="Llama 3.1, 3.2 and 3.3",
        ),
        ToolFormat(
            "bare_json",
            "",
            "",
            JsonCall(parser=BareJsonParser),
            before="[",
            between_calls=", ",
            after="]",
            bare=True,
            lost_starts=("```", "[TOOL_CALLS]", "<tool_call>"),
            models="xLAM",
        ),
        # A name, a separator and a JSON object.
        ToolFormat(
            "apertus",
            "<|tools_prefix|>",
            "<|tools_suffix|>",
            JsonCall('{"', '": ', "}", names=PATH_NAME),
            before="[",
            between_calls=", ",
            after="]",
            models="Apertus",
        ),
        ToolFormat(
            "mistral",
            "[TOOL_CALLS]",
            "",
            JsonCall("", "[ARGS]", "", names=PATH_NAME, parser=MistralParser),
            between_sections="",
            models="Mistral Small 3.2, Ministral 3, Devstral, Magistral",
        ),
        ToolFormat(
            "mistral_call_id",
            "[TOOL_CALLS]",
            "",
            JsonCall("", f"[CALL_ID]{CALL_ID}[ARGS]", "", names=PATH_NAME, parser=MistralParser),
            between_sections="",
            models="Mistral Small 3.2 with ids",
        ),
        ToolFormat(
            "mistral_nemo",
            "[TOOL_CALLS]",
            "",
            JsonCall(after=f', "id": "{CALL_ID}"}}', parser=NemoParser),
            before="[",
            between_calls=", ",
            after="]",
            models="Mistral Nemo, Mistral 7B v0.3",
        ),
        ToolFormat(
            "kimi_k2",
            "<|tool_calls_section_begin|>",
            "<|tool_calls_section_end|>",
            JsonCall(
                "<|tool_call_begin|>functions.",
                f":{NUMBER}<|tool_call_argument_begin|>",
                "<|tool_call_end|>",
                names=PATH_NAME,
                parser=KimiParser,
            ),
            between_calls="",
            lost_starts=("<|tool_call_begin|>",),
            ends_reasoning=True,
            models="Kimi K2",
        ),
        ToolFormat(
            "deepseek_v3",
            "<｜tool▁calls▁begin｜>",
            "<｜tool▁calls▁end｜>",
            JsonCall(
                "<｜tool▁call▁begin｜>function<｜tool▁sep｜>",
                "\n```json\n",
                "\n```<｜tool▁call▁end｜>",
                names=PATH_NAME,
            ),
            between_calls="\n",
            lost_starts=("<｜tool▁call▁begin｜>",),
            stray=_DEEPSEEK_RESULTS,
            models="DeepSeek R1 and V3",
        ),
        ToolFormat(
            "deepseek_v3_1",
            "<｜tool▁calls▁begin｜>",
            "<｜tool▁calls▁end｜>",
            JsonCall("<｜tool▁call▁begin｜>", "<｜tool▁sep｜>", "<｜tool▁call▁end｜>", names=PATH_NAME),
            between_calls="",
            lost_starts=("<｜tool▁call▁begin｜>",),
            stray=_DEEPSEEK_RESULTS,
            models="DeepSeek V3.1",
        ),
        ToolFormat(
            "solar_open",
            "<|tool_calls|>",
            "",
            JsonCall(
                f"<|tool_call:begin|>{CALL_ID}<|tool_call:name|>",
                "<|tool_call:args|>",
                "<|tool_call:end|>",
                names=PATH_NAME,
            ),
            between_calls="",
            lost_starts=("<|tool_call:begin|>",),
            models="Solar Open",
        ),
        ToolFormat(
            "functionary_v3_1",
            "<function=",
            "</function>",
            JsonCall("", ">", "", names=PATH_NAME),
            between_sections="",
            models="Functionary 3.1",
        ),
        ToolFormat(
            "functionary_v3_2",
            ">>>",
            "",
            JsonCall("", "\n", "", names=PATH_NAME),
            between_sections="",
            models="Functionary 3.2",
        ),
        ToolFormat(
            "glm4",
            "",
            "",
            JsonCall("", "\n", "", names=PATH_NAME, parser=NamedLineParser),
            bare=True,
            models="GLM 4, up to 0414",
        ),
        ToolFormat(
            "harmony",
            "<|channel|>commentary to=",
            "<|call|>",
            _harmony("", *_CONSTRAINED),
            other_calls=(
                ("<|channel|>analysis to=", _harmony("", *_CONSTRAINED)),
                *(
                    (" to=", _harmony(f"<|channel|>{channel}", " json", " <|constrain|>json"))
                    for channel in ("commentary", "analysis")
                ),
            ),
            models="gpt-oss",
        ),
        # A name, and parameters between tags.
        ToolFormat(
            "qwen3_coder",
            "<tool_call>",
            "</tool_call>",
            TaggedCall(
                head="<function={}>\n",
                tag="<parameter={}>\n",
                end="\n</parameter>\n",
                tail="</function>",
                excluded=(
                    "</parameter>",
                    "</tool_call>",
                ),
                head_pattern=r"<function=\s*(?P<function>[^\s<>]+)(?:\s*>|\s+(?=[^\s>]))",
                tag_pattern=r"<parameter=\s*(?P<parameter>[^\s<>]+)(?:\s*>|\s+(?=[^\s>]))",
            ),
            before="\n",
            after="\n",
            between_sections="\n",
            lost_starts=("<function=",),
            ends_reasoning=True,
            models="Qwen3-Coder, Qwen 3.5, Nemotron 3, Step 3.5",
        ),
        ToolFormat(
            "seed_oss",
            "<seed:tool_call>",
            "</seed:tool_call>",
            TaggedCall(
                head="<function={}>\n",
                tag="<parameter={}>",
                end="</parameter>\n",
                tail="</function>",
                excluded=("</seed:tool_call>",),
            ),
            before="\n",
            after="\n",
            between_sections="\n",
            lost_starts=("<function=",),
            models="Seed-OSS",
        ),
        ToolFormat(
            "glm47",
            "<tool_call>",
            "</tool_call>",
            _key_value(line=""),
            between_sections="",
            ends_reasoning=True,
            models="GLM 4.7",
        ),
        ToolFormat(
            "glm45",
            "<tool_call>",
            "</tool_call>",
            _key_value(),
            between_sections="\n",
            ends_reasoning=True,
            models="GLM 4.5 and 4.6, Ling",
        ),
        ToolFormat(
            "laguna",
            "<tool_call>",
            "</tool_call>",
            _key_value(line=""),
            between_sections="",
            ends_reasoning=True,
            models="Laguna",
        ),
        ToolFormat(
            "longcat",
            "<longcat_tool_call>",
            "</longcat_tool_call>",
            _key_value("longcat_"),
            between_sections="\n",
            ends_reasoning=True,
            models="LongCat",
        ),
        _hy3("hy3", ":opensource", "Hunyuan 3"),
        _hy3("hy3_plain", "", "Hunyuan 3, tags without a suffix"),
        ToolFormat(
            "k2_horizon",
            "<ifm|tool_calls>",
            "</ifm|tool_calls>",
            TaggedCall(
                head="<ifm|tool_call>{}",
                tag="<ifm|arg_key>{}</ifm|arg_key><ifm|arg_value>",
                end="</ifm|arg_value>",
                tail="</ifm|tool_call>",
                excluded=("</ifm|tool_calls>",),
                head_pattern=r"<ifm\|tool_call>\s*(?P<function>[^\s<>{}]+)\s*(?=</?ifm\|)",
                tag_pattern=r"<ifm\|arg_key>(?P<parameter>[^<]+)</ifm\|arg_key>\s*"
                r"(?:<ifm\|arg_type>(?P<kind>\w+)</ifm\|arg_type>\s*)?<ifm\|arg_value>",
            ),
            between_calls="\n",
            lost_starts=("<ifm|tool_call>",),
            models="K2 Horizon",
        ),
        ToolFormat(
            "k2_horizon_json",
            "<ifm|tool_calls>",
            "</ifm|tool_calls>",
            JsonCall('<ifm|tool_call>{"name": ', after="}</ifm|tool_call>"),
            between_calls="\n",
            models="K2 Horizon, in JSON",
        ),
        ToolFormat(
            "minimax_m2",
            "<minimax:tool_call>",
            "</minimax:tool_call>",
            TaggedCall(
                head='<invoke name="{}">\n',
                tag='<parameter name="{}">',
                end="</parameter>\n",
                tail="</invoke>\n",
                excluded=("</minimax:tool_call>",),
                head_pattern=r"""<invoke name=["']?(?P<function>[^>"']+)["']?>""",
                tag_pattern=r"""<parameter name=["']?(?P<parameter>[^>"']+)["']?>""",
            ),
            before="\n",
            between_calls="",
            lost_starts=("<invoke name=",),
            models="MiniMax M2",
        ),
        ToolFormat(
            "dots",
            "<dots_function_call>",
            "</dots_function_call>",
            TaggedCall(
                head='<invoke name="{}">',
                tag='<parameter name="{}">',
                end="</parameter>",
                tail="</invoke>",
                excluded=("</dots_function_call>",),
            ),
            between_calls="",
            lost_starts=("<invoke name=",),
            models="dots",
        ),
        ToolFormat(
            "minimax_m3",
            f"{_MINIMAX_M3}<tool_call>",
            f"{_MINIMAX_M3}</tool_call>",
            NestedCall(_MINIMAX_M3),
            before="\n",
            between_calls="",
            lost_starts=(f"{_MINIMAX_M3}<invoke name=",),
            models="MiniMax M3",
        ),
        _dsml("function_calls", "DeepSeek V3.2"),
        _dsml("tool_calls", "DeepSeek V4"),
        ToolFormat(
            "step3",
            "<｜tool_calls_begin｜>",
            "<｜tool_calls_end｜>",
            TaggedCall(
                head='<｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name="{}">',
                tag='<steptml:parameter name="{}">',
                end="</steptml:parameter>",
                tail="</steptml:invoke><｜tool_call_end｜>",
                excluded=("<｜tool_calls_end｜>",),
                head_pattern=r"(?:<｜tool_sep｜>\s*)?(?:<｜tool_call_begin｜>\s*)?(?:function\s*<｜tool_sep｜>\s*)?"
                r"""<steptml:invoke\s+name=["']?(?P<function>[^\s<>"']+)["']?\s*>""",
            ),
            between_calls="",
            lost_starts=("<｜tool_call_begin｜>", "<steptml:invoke name="),
            models="Step 3",
        ),
        ToolFormat(
            "minicpm5",
            "<function name=",
            "</function>",
            TaggedCall(
                head='"{}">',
                tag='<param name="{}">',
                end="</param>",
                excluded=(
                    "<",
                    "&",
                ),
                head_pattern=r"""\A\s*["']?(?P<function>[^\s"'<>]+)["']?\s*>""",
                tag_pattern=r"""<param\s+name\s*=\s*["']?(?P<parameter>[^"'<>]+)["']?\s*>""",
                recovers=False,
                cdata=True,
            ),
            between_sections="",
            models="MiniCPM 5",
        ),
        ToolFormat(
            "muse_spark",
            "<atem:function_calls>",
            "</atem:function_calls>",
            TaggedCall(
                head='<atem:invoke name="{}">\n',
                tag='<atem:parameter name="{}">',
                end="</atem:parameter>\n",
                tail="</atem:invoke>\n",
                head_pattern=r'<atem:invoke\b[^>]*?\bname="(?P<function>[^"<>]+)">',
                tag_pattern=r'<atem:parameter\b[^>]*?\bname="(?P<parameter>[^"<>]+)"[^>]*>',
            ),
            before="\n",
            between_calls="",
            models="Muse Spark",
        ),
        ToolFormat(
            "kimi_k3",
            "<|open|>tools<|sep|>",
            "<|close|>tools<|sep|>",
            TaggedCall(
                head=f'<|open|>call tool="{{}}" index="{NUMBER}"<|sep|>',
                tag='<|open|>argument key="{}" type="{kind}"<|sep|>',
                end="<|close|>argument<|sep|>",
                tail="<|close|>call<|sep|>",
                head_pattern=rf'<\|open\|>call\s{_SEP}?\btool="(?P<function>[^"]+)"{_SEP}<\|sep\|>',
                tag_pattern=rf'(?:<\|open\|>argument\b(?={_SEP}?\btype="(?P<kind>\w+)")?{_SEP}?'
                rf'\bkey="(?P<parameter>[^"]+)"{_SEP}|(?P<whole><\|open\|>json\b{_SEP}))<\|sep\|>',
                end_pattern=r"<\|close\|>(?:argument|json)<\|sep\|>",
            ),
            between_calls="",
            models="Kimi K3",
        ),
        # Python.
        ToolFormat(
            "pythonic",
            "<|tool_call_start|>",
            "<|tool_call_end|>",
            PythonCall(),
            before="[",
            between_calls=", ",
            after="]",
            models="LFM2, LFM2.5",
        ),
        ToolFormat("olmo3", "<function_calls>", "</function_calls>", PythonCall(), between_calls="\n", models="OLMo 3"),
        ToolFormat(
            "llama4_pythonic",
            "<|python_start|>",
            "<|python_end|>",
            PythonCall(BarePythonParser),
            before="[",
            between_calls=", ",
            after="]",
            bare=True,
            models="Llama 3.2 and 4, in Python",
        ),
        ToolFormat(
            "gemma3_code",
            "```tool_code",
            "\n```",
            PythonCall(ToolCodeParser, required_first=True),
            before="\n",
            between_calls="\n",
            models="Gemma 3",
        ),
        # Gemma's own notation.
        ToolFormat(
            "gemma4",
            "<|tool_call>",
            "<tool_call|>",
            GemmaCall('<|"|>'),
            between_sections="",
            stray=("<tool_call|>", "<|tool_response>"),
            models="Gemma 4",
        ),
        ToolFormat(
            "function_gemma",
            "<start_function_call>",
            "<end_function_call>",
            GemmaCall("<escape>"),
            between_sections="",
            models="FunctionGemma",
        ),
    )
}
"""All formats by name."""
