"""Turns of families that share a format of tool calls with another one, and have another template around it."""
# ruff: noqa: E501  # a call is easier to read in one line

from .family_turns import ARGUMENTS, CALL, CALL_NAME, CONTENT, ID, JSON, NAME, OBJECT, THINK, TURNS, Turns, each

_PYTHON = "{% for key, value in call.function.arguments.items() %}{{ key }}={{ value | tojson }}{% if not loop.last %}, {% endif %}{% endfor %}"
_LISTED = "{% if tools %}Tools: <|tool_list_start|>{{ tools | tojson }}<|tool_list_end|>\n{% endif %}"

VARIANTS: dict[str, Turns] = {
    # Describe tools and write no calls.
    "lfm2": Turns(
        '<|tool_call_start|>[edit(path="a.c", line=2)]<|tool_call_end|>',
        "",
        result=f"<|im_start|>tool\n<|tool_response_start|>{CONTENT}<|tool_response_end|><|im_end|>\n",
        tools=_LISTED,
        found_as="pythonic",
    ),
    "granite3_3": Turns(
        f"<|tool_call|>[{CALL}]",
        "",
        user=f"<|start_of_role|>user<|end_of_role|>{CONTENT}<|end_of_text|>\n",
        opening="<|start_of_role|>assistant<|end_of_role|>",
        end="<|end_of_text|>\n",
        result=f"<|start_of_role|>tool<|end_of_role|>{CONTENT}<|end_of_text|>\n",
        tools="{% if tools %}Write <|tool_call|> and a list of calls.\n{{ tools | tojson }}\n{% endif %}",
        found_as="granite3",
    ),
    # Fails where it writes calls: a list is changed, which templates may not do.
    "kimi_k2_append": Turns(
        f"<|tool_calls_section_begin|><|tool_call_begin|>functions.edit:0<|tool_call_argument_begin|>{JSON}<|tool_call_end|><|tool_calls_section_end|>",
        "{% set ids = [] %}<|tool_calls_section_begin|>"
        + each(
            f"{{% set _ = ids.append(call.id) %}}<|tool_call_begin|>{ID}<|tool_call_argument_begin|>{ARGUMENTS}<|tool_call_end|>"
        )
        + "<|tool_calls_section_end|>",
        user=f"<|im_user|>user<|im_middle|>{CONTENT}<|im_end|>",
        opening="<|im_assistant|>assistant<|im_middle|>",
        end="<|im_end|>",
        result=f"<|im_system|>tool<|im_middle|>## Return of functions.{CALL_NAME}\n{CONTENT}<|im_end|>",
        found_as="kimi_k2",
    ),
    # A template of its own for requests with tools, which demands a list of them.
    "hermes": Turns(
        f"<tool_call>\n{CALL}\n</tool_call>",
        each(f"<tool_call>\n{OBJECT}\n</tool_call>", "\n"),
        result=f"<|im_start|>tool\n<tool_response>\n{CONTENT}\n</tool_response><|im_end|>\n",
        tools="Tools: {% for tool in tools %}{{ tool.function | tojson }}\n{% endfor %}",
        found_as="json_tools",
        is_for_tools=True,
    ),
    "jamba": Turns(
        f"<tool_calls>[\n{CALL}\n]</tool_calls>",
        f"<tool_calls>[\n{each(OBJECT, ',' + chr(10))}\n]</tool_calls>",
        user=f"<|bom|><|user|> {CONTENT}<|eom|>",
        opening="<|bom|><|assistant|> ",
        end="<|eom|>",
        result=f"<|bom|><|tool|> {CONTENT}<|eom|>",
        found_as="tool_calls_list",
    ),
    "hunyuan_a13b": Turns(
        f"<tool_calls>[{CALL}]</tool_calls>",
        f"<tool_calls>[{each(OBJECT, ', ')}]</tool_calls>",
        user=f"<|start|>{CONTENT}<|extra_0|>",
        opening="",
        end="<|eos|>",
        result=f"<|start|><tool_response>{CONTENT}</tool_response><|extra_0|>",
        thought=("<think>\n", "\n</think>\n"),
        trims=True,
        texts=(*THINK, "<tool_calls>", "</tool_calls>"),
        found_as="tool_calls_list",
    ),
    "minimax_m1": Turns(
        f"<tool_calls>\n{CALL}\n</tool_calls>",
        f"<tool_calls>\n{each(OBJECT + chr(10))}</tool_calls>",
        user=f"<beginning_of_sentence>user name=user\n{CONTENT}<end_of_sentence>\n",
        opening="<beginning_of_sentence>ai name=assistant\n",
        end="<end_of_sentence>\n",
        result=f"<beginning_of_sentence>tool name=tools\ntool result: {CONTENT}\n\n<end_of_sentence>\n",
        found_as="tool_calls_list",
        texts=("<tool_calls>", "</tool_calls>"),
    ),
    "ernie": Turns(
        f"\n<tool_call>\n{CALL}\n</tool_call>\n",
        each(f"\n<tool_call>\n{OBJECT}\n</tool_call>\n"),
        user=f"<|im_start|>user\n{CONTENT}<|im_end|>\n\n",
        opening="<|im_start|>assistant\n",
        opens="<think>\n",
        end="<|im_end|>\n\n",
        result=f"<|im_start|>tool\n<tool_output>\n{CONTENT}\n</tool_output>\n<|im_end|>\n\n",
        thought=("<think>\n", "\n</think>\n\n"),
        trims=True,
        found_as="json_tools",
    ),
    "llama32_pythonic": Turns(
        '[edit(path="a.c", line=2)]',
        f"[{each(f'{NAME}({_PYTHON})', ', ')}]",
        user=f"<|start_header_id|>user<|end_header_id|>\n\n{CONTENT}<|eot_id|>",
        opening="<|start_header_id|>assistant<|end_header_id|>\n\n",
        end="<|eot_id|>",
        result=f"<|start_header_id|>ipython<|end_header_id|>\n\n{CONTENT}<|eot_id|>",
        found_as="llama4_pythonic",
    ),
}
"""The families by names of their own."""
ALL_TURNS = TURNS | VARIANTS
