"""Families of models by their formats of tool calls: a template, and an answer with its arguments."""
# ruff: noqa: E501  # a template is easier to read in one line

from dataclasses import dataclass
from typing import Any

HEAD = "{% for tool in tools or [] %}{{ tool.function | tojson }}\n{% endfor %}"
CALLS = "{% for call in m.tool_calls or [] %}BODY{% endfor %}"
ITEMS = "{% for key, value in call.function.arguments.items() %}ITEM{% endfor %}"
VALUE = "{{ value if value is string else value | tojson }}"
JSON = '{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}}'


@dataclass
class Family:
    """A family: how its template writes calls, and one of its answers with the arguments in it."""

    calls: str
    answer: str
    arguments: dict[str, Any]

    @property
    def template(self) -> str:
        """The chat template, with a turn for each message."""
        turn = "<|turn|>{{ m.role }}\n{{ m.content or '' }}"
        return f"{HEAD}{{% for m in messages %}}{turn}{self.calls}\n{{% endfor %}}<|turn|>assistant\n"


def section(before: str, body: str, after: str) -> str:
    """Return the part of a template that writes the calls of a turn between markers."""
    return f"{{% if m.tool_calls %}}{before}{CALLS.replace('BODY', body)}{after}{{% endif %}}"


def tagged(head: str, item: str, tail: str) -> str:
    """Return the part of a template that writes a call with its parameters between tags."""
    return (
        head.replace("NAME", "{{ call.function.name }}")
        + ITEMS.replace("ITEM", item.replace("KEY", "{{ key }}").replace("VALUE", VALUE))
        + tail
    )


INDENTED = "    a = 1\n\n"
FAMILIES = {
    "json_tools": Family(
        section("", f"<tool_call>\n{JSON}\n</tool_call>", ""),
        '<tool_call>\n{"name": "edit", "arguments": {"path": "a.c", "line": 2}}\n</tool_call>',
        {"path": "a.c", "line": 2},
    ),
    "command_r7b": Family(
        section(
            "<|START_ACTION|>[\n    ",
            '{"tool_call_id": "0", "tool_name": "{{ call.function.name }}", '
            '"parameters": {{ call.function.arguments | tojson }}}',
            "\n]<|END_ACTION|>",
        ),
        '<|START_ACTION|>[{"tool_call_id": "3", "tool_name": "edit", "parameters": {"line": 7}}]<|END_ACTION|>',
        {"line": 7},
    ),
    "nemotron_v2": Family(
        section("<TOOLCALL>[", JSON, "]</TOOLCALL>"),
        '<TOOLCALL>[{"name": "edit", "arguments": {"tags": ["x", "y"]}}]</TOOLCALL>',
        {"tags": ["x", "y"]},
    ),
    "apertus": Family(
        section(
            "<|tools_prefix|>[",
            '{"{{ call.function.name }}": {{ call.function.arguments | tojson }}}',
            "]<|tools_suffix|>",
        ),
        '<|tools_prefix|>[{"edit": {"path": "b"}}]<|tools_suffix|>',
        {"path": "b"},
    ),
    "deepseek_v3_1": Family(
        section(
            "<｜tool▁calls▁begin｜>",
            "<｜tool▁call▁begin｜>{{ call.function.name }}<｜tool▁sep｜>{{ call.function.arguments | tojson }}<｜tool▁call▁end｜>",
            "<｜tool▁calls▁end｜>",
        ),
        '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>edit<｜tool▁sep｜>{"line": 1}<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
        {"line": 1},
    ),
    "mistral_nemo": Family(
        section("[TOOL_CALLS][", JSON[:-1] + ', "id": "{{ call.id }}"}', "]"),
        '[TOOL_CALLS][{"name": "edit", "arguments": {"line": 1}, "id": "abcdefghi"}]',
        {"line": 1},
    ),
    "qwen3_coder": Family(
        section(
            "",
            "<tool_call>\n"
            + tagged("<function=NAME>\n", "<parameter=KEY>\nVALUE\n</parameter>\n", "</function>\n")
            + "</tool_call>",
            "",
        ),
        f"<tool_call>\n<function=edit>\n<parameter=path>\n{INDENTED}\n</parameter>\n<parameter=text>\nnull\n</parameter>\n"
        "</function>\n</tool_call>",
        {"path": INDENTED, "text": None},
    ),
    "seed_oss": Family(
        section(
            "",
            "<seed:tool_call>\n"
            + tagged("<function=NAME>\n", "<parameter=KEY>VALUE</parameter>\n", "</function>\n")
            + "</seed:tool_call>",
            "",
        ),
        f"<seed:tool_call>\n<function=edit>\n<parameter=path>{INDENTED}</parameter>\n</function>\n</seed:tool_call>",
        {"path": INDENTED},
    ),
    "glm45": Family(
        section(
            "",
            tagged("\n<tool_call>NAME\n", "<arg_key>KEY</arg_key>\n<arg_value>VALUE</arg_value>\n", "</tool_call>"),
            "",
        ),
        f"<tool_call>edit\n<arg_key>text</arg_key>\n<arg_value>{INDENTED}</arg_value>\n<arg_key>line</arg_key>\n"
        "<arg_value>5</arg_value>\n</tool_call>",
        {"text": INDENTED, "line": 5},
    ),
    "minimax_m2": Family(
        section(
            "<minimax:tool_call>\n",
            tagged('<invoke name="NAME">\n', '<parameter name="KEY">VALUE</parameter>\n', "</invoke>\n"),
            "</minimax:tool_call>",
        ),
        f'<minimax:tool_call>\n<invoke name="edit">\n<parameter name="path">{INDENTED}</parameter>\n'
        '<parameter name="line">5</parameter>\n</invoke>\n</minimax:tool_call>',
        {"path": INDENTED, "line": 5},
    ),
    "dsml_tool_calls": Family(
        section(
            "<｜DSML｜tool_calls>\n",
            tagged(
                '<｜DSML｜invoke name="NAME">\n',
                "<｜DSML｜parameter name=\"KEY\" string=\"{{ 'true' if value is string else 'false' }}\">VALUE</｜DSML｜parameter>\n",
                "</｜DSML｜invoke>\n",
            ),
            "</｜DSML｜tool_calls>",
        ),
        '<｜DSML｜tool_calls>\n<｜DSML｜invoke name="edit">\n<｜DSML｜parameter name="text" string="true">12'
        '</｜DSML｜parameter>\n<｜DSML｜parameter name="tags" string="false">["a"]</｜DSML｜parameter>\n'
        "</｜DSML｜invoke>\n</｜DSML｜tool_calls>",
        {"text": "12", "tags": ["a"]},
    ),
    "minimax_m3": Family(
        section(
            "]<]minimax[>[<tool_call>\n",
            tagged(
                ']<]minimax[>[<invoke name="NAME">',
                "]<]minimax[>[<KEY>VALUE]<]minimax[>[</KEY>",
                "]<]minimax[>[</invoke>\n",
            ),
            "]<]minimax[>[</tool_call>",
        ),
        ']<]minimax[>[<tool_call>\n]<]minimax[>[<invoke name="edit">]<]minimax[>[<tags>]<]minimax[>[<item>a]<]minimax[>['
        "</item>]<]minimax[>[<item>b]<]minimax[>[</item>]<]minimax[>[</tags>]<]minimax[>[<line>3]<]minimax[>[</line>"
        "]<]minimax[>[</invoke>\n]<]minimax[>[</tool_call>",
        {"tags": ["a", "b"], "line": 3},
    ),
    "granite_20b": Family(
        section("", f"<function_call> {JSON}\n", ""),
        '<function_call> {"name": "edit", "arguments": {"path": "a"}}',
        {"path": "a"},
    ),
    "phi4_mini": Family(
        section("<|tool_call|>[", JSON, "]<|/tool_call|>"),
        '<|tool_call|>[{"name": "edit", "arguments": {"line": 1}}]<|/tool_call|>',
        {"line": 1},
    ),
    "dots": Family(
        section(
            "<dots_function_call>",
            tagged('<invoke name="NAME">', '<parameter name="KEY">VALUE</parameter>', "</invoke>"),
            "</dots_function_call>",
        ),
        f'<dots_function_call><invoke name="edit"><parameter name="path">{INDENTED}</parameter></invoke>'
        "</dots_function_call>",
        {"path": INDENTED},
    ),
    "hy3_plain": Family(
        section(
            "<tool_calls>\n",
            tagged(
                "<tool_call>NAME<tool_sep>\n",
                "<arg_key>KEY</arg_key>\n<arg_value>VALUE</arg_value>\n",
                "</tool_call>\n",
            ),
            "</tool_calls>",
        ),
        "<tool_calls><tool_call>edit<tool_sep><arg_key>line</arg_key><arg_value>4</arg_value></tool_call></tool_calls>",
        {"line": 4},
    ),
    "step3": Family(
        section(
            "<｜tool_calls_begin｜>",
            tagged(
                '<｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name="NAME">',
                '<steptml:parameter name="KEY">VALUE</steptml:parameter>',
                "</steptml:invoke><｜tool_call_end｜>",
            ),
            "<｜tool_calls_end｜>",
        ),
        '<｜tool_calls_begin｜><｜tool_call_begin｜><steptml:invoke name="edit"><steptml:parameter name="path">a'
        "</steptml:parameter></steptml:invoke><｜tool_call_end｜><｜tool_calls_end｜>",
        {"path": "a"},
    ),
    "pythonic": Family(
        section(
            "<|tool_call_start|>[",
            "{{ call.function.name }}(" + ITEMS.replace("ITEM", "{{ key }}={{ value | tojson }}") + ")",
            "]<|tool_call_end|>",
        ),
        '<|tool_call_start|>[edit(path="a", text=None)]<|tool_call_end|>',
        {"path": "a", "text": None},
    ),
}
