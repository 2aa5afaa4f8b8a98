"""Answers with a call as models of some families write them, with its arguments: they depart from their templates."""
# ruff: noqa: E501  # an answer is easier to read in one line

from typing import Any

INDENTED = "    a = 1\n\n"
ANSWERS: dict[str, tuple[str, dict[str, Any]]] = {
    "json_tools": (
        '<tool_call>\n{"name": "edit", "arguments": {"path": "a.c", "line": 2}}\n</tool_call>',
        {"path": "a.c", "line": 2},
    ),
    "command_r7b": (
        '<|START_ACTION|>[{"tool_call_id": "3", "tool_name": "edit", "parameters": {"line": 7}}]<|END_ACTION|>',
        {"line": 7},
    ),
    "nemotron_v2": ('<TOOLCALL>[{"name": "edit", "arguments": {"tags": ["x", "y"]}}]</TOOLCALL>', {"tags": ["x", "y"]}),
    "apertus": ('<|tools_prefix|>[{"edit": {"path": "b"}}]<|tools_suffix|>', {"path": "b"}),
    "deepseek_v3_1": (
        '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>edit<｜tool▁sep｜>{"line": 1}<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
        {"line": 1},
    ),
    "mistral_nemo": ('[TOOL_CALLS][{"name": "edit", "arguments": {"line": 1}, "id": "abcdefghi"}]', {"line": 1}),
    "qwen3_coder": (
        "<tool_call>\n<function=edit>\n<parameter=path>\n"
        + INDENTED
        + "\n</parameter>\n<parameter=text>\nnull\n</parameter>\n</function>\n</tool_call>",
        {"path": INDENTED, "text": None},
    ),
    "seed_oss": (
        "<seed:tool_call>\n<function=edit>\n<parameter=path>"
        + INDENTED
        + "</parameter>\n</function>\n</seed:tool_call>",
        {"path": INDENTED},
    ),
    "glm45": (
        "<tool_call>edit\n<arg_key>text</arg_key>\n<arg_value>"
        + INDENTED
        + "</arg_value>\n<arg_key>line</arg_key>\n<arg_value>5</arg_value>\n</tool_call>",
        {"text": INDENTED, "line": 5},
    ),
    "minimax_m2": (
        '<minimax:tool_call>\n<invoke name="edit">\n<parameter name="path">'
        + INDENTED
        + '</parameter>\n<parameter name="line">5</parameter>\n</invoke>\n</minimax:tool_call>',
        {"path": INDENTED, "line": 5},
    ),
    "dsml_tool_calls": (
        '<｜DSML｜tool_calls>\n<｜DSML｜invoke name="edit">\n<｜DSML｜parameter name="text" string="true">12</｜DSML｜parameter>\n<｜DSML｜parameter name="tags" string="false">["a"]</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜tool_calls>',
        {"text": "12", "tags": ["a"]},
    ),
    "minimax_m3": (
        ']<]minimax[>[<tool_call>\n]<]minimax[>[<invoke name="edit">]<]minimax[>[<tags>]<]minimax[>[<item>a]<]minimax[>[</item>]<]minimax[>[<item>b]<]minimax[>[</item>]<]minimax[>[</tags>]<]minimax[>[<line>3]<]minimax[>[</line>]<]minimax[>[</invoke>\n]<]minimax[>[</tool_call>',
        {"tags": ["a", "b"], "line": 3},
    ),
    "granite_20b": ('<function_call> {"name": "edit", "arguments": {"path": "a"}}', {"path": "a"}),
    "phi4_mini": ('<|tool_call|>[{"name": "edit", "arguments": {"line": 1}}]<|/tool_call|>', {"line": 1}),
    "k2_horizon": (
        "<ifm|tool_calls><ifm|tool_call>edit<ifm|arg_key>path</ifm|arg_key><ifm|arg_type>string</ifm|arg_type><ifm|arg_value>"
        + INDENTED
        + "</ifm|arg_value></ifm|tool_call></ifm|tool_calls>",
        {"path": INDENTED},
    ),
    "k2_horizon_json": (
        '<ifm|tool_calls>\n<ifm|tool_call>{"name": "edit", "arguments": {"line": 3}}</ifm|tool_call>\n</ifm|tool_calls>',
        {"line": 3},
    ),
    "dots": (
        '<dots_function_call><invoke name="edit"><parameter name="path">'
        + INDENTED
        + "</parameter></invoke></dots_function_call>",
        {"path": INDENTED},
    ),
    "hy3_plain": (
        "<tool_calls><tool_call>edit<tool_sep><arg_key>line</arg_key><arg_value>4</arg_value></tool_call></tool_calls>",
        {"line": 4},
    ),
    "step3": (
        '<｜tool_calls_begin｜><｜tool_call_begin｜><steptml:invoke name="edit"><steptml:parameter name="path">a</steptml:parameter></steptml:invoke><｜tool_call_end｜><｜tool_calls_end｜>',
        {"path": "a"},
    ),
    "pythonic": ('<|tool_call_start|>[edit(path="a", text=None)]<|tool_call_end|>', {"path": "a", "text": None}),
}
"""Answers by the names of formats."""
