"""Turns of each family, as its chat template writes them: one record for each format of tool calls.

A record has the texts of the family's turns. Its template is made of them, and so are the prompts that a test expects: an
answer is in the next prompt as the model wrote it, its reasoning where the family keeps that.
"""
# ruff: noqa: E501  # a call is easier to read in one line

import re
from dataclasses import dataclass
from typing import Any, Literal

NAME, ARGUMENTS, ID = "{{ call.function.name }}", "{{ call.function.arguments | tojson }}", "{{ call.id }}"
CONTENT, JSON_CONTENT = "{{ m.content }}", "{{ m.content | tojson }}"
CALL_ID, CALL_NAME = "{{ m.tool_call_id }}", "{{ m.name }}"
VALUE = "{{ value if value is string else value | tojson }}"
OBJECT = f'{{"name": "{NAME}", "arguments": {ARGUMENTS}}}'
JSON = '{"path": "a.c", "line": 2}'
CALL = f'{{"name": "edit", "arguments": {JSON}}}'
THINK = ("<think>", "</think>")
THINK_LINES = ("<think>\n", "\n</think>\n\n")
LLAMA = "<|start_header_id|>{}<|end_header_id|>\n\n"
MESSAGE_ID = "abcdefghi"
"""The id that the model gives a call, in families whose calls have one."""


def each(body: str, between: str = "") -> str:
    """Return the part of a template that writes the calls of a turn."""
    return f"{{% for call in m.tool_calls %}}{body}{{% if not loop.last %}}{between}{{% endif %}}{{% endfor %}}"


def tagged(head: str, item: str, tail: str) -> str:
    """Return the part of a template that writes a call with its parameters between tags."""
    items = item.replace("KEY", "{{ key }}").replace("VALUE", VALUE)
    loop = f"{{% for key, value in call.function.arguments.items() %}}{items}{{% endfor %}}"
    return head.replace("NAME", NAME) + loop + tail


def filled(tag: str) -> str:
    """Return the two parameters of the call between tags."""
    return tag.replace("KEY", "path").replace("VALUE", "a.c") + tag.replace("KEY", "line").replace("VALUE", "2")


@dataclass(frozen=True)
class Turns:
    """The turns of a family."""

    call: str
    """The call of `edit` with the path a.c and the line 2, as the model writes it."""
    calls: str
    """The part of the template that writes the calls of a message."""
    user: str = f"<|im_start|>user\n{CONTENT}<|im_end|>\n"
    opening: str = "<|im_start|>assistant\n"
    """The beginning of the model's turn."""
    opens: str = ""
    """Further text at the end of a prompt, which the model does not write."""
    end: str = "<|im_end|>\n"
    """The end of the model's turn."""
    call_end: str | None = None
    """The end of a turn with calls, where it is another."""
    result: str = f"<|im_start|>tool\n{CONTENT}<|im_end|>\n"
    reopening: str | None = None
    """The beginning of the model's turn after a result, where it is another."""
    thought: tuple[str, str] | None = None
    """The texts around reasoning; None for a family that does not reason."""
    kept: Literal["turn", "always", "never"] = "turn"
    """The turns whose reasoning the template writes: those since the last message of the user, all or none."""
    dropped: str = ""
    """Text that the template writes in place of other reasoning."""
    reasoning: str = "m.reasoning_content"
    """The message's reasoning, for the template."""
    trims: bool = False
    """The template trims reasoning and text."""
    special: tuple[str, ...] = ()
    """Special tokens besides the markers of the texts."""
    texts: tuple[str, ...] = ()
    """Markers of the texts that are several tokens."""
    ends: tuple[str, ...] = ()
    """Special tokens that end an answer, besides the usual one."""
    model_type: str = "llama"
    tools: str = "{% for tool in tools or [] %}{{ tool.function | tojson }}\n{% endfor %}"
    found_as: str = ""
    """The format that is found, where it has the same texts."""
    single: bool = False
    """A turn has one call."""
    is_for_tools: bool = False
    """The template is for requests with tools, and there is another one for the rest."""

    @property
    def template(self) -> str:
        """The chat template."""
        has_reasoning = self.reasoning if self.thought and self.kept != "never" else "false"
        if self.kept == "turn":
            has_reasoning = f"{has_reasoning} and loop.index0 > ns.last"
        before, after = self.thought or ("", "")
        trim = " | trim" if self.trims else ""
        thought = f"{before}{{{{ {self.reasoning}{trim} }}}}{after}"
        answer = f"{{% if {has_reasoning} %}}{thought}{{% else %}}{self.dropped}{{% endif %}}{{{{ text{trim} }}}}"
        end = f"{self.end if self.call_end is None else self.call_end}{{% else %}}{self.end}{{% endif %}}"
        text = "{% set text = m.content if m.content is string or not m.content else m.content | selectattr('type', 'equalto', 'text') | map(attribute='text') | join %}"
        again = self.again
        opening = f"{{% if loop.index0 and messages[loop.index0 - 1].role == 'tool' %}}{again}{{% else %}}{self.opening}{{% endif %}}"
        turns = (
            f"{{% if m.role == 'tool' %}}{self.result}{{% elif m.role == 'assistant' %}}{text}{opening}{answer}"
            f"{{% if m.tool_calls %}}{self.calls}{end}{{% else %}}{self.user}{{% endif %}}"
        )
        last = "{% set ns = namespace(last=-1) %}{% for m in messages %}{% if m.role == 'user' %}{% set ns.last = loop.index0 %}{% endif %}{% endfor %}"
        prompt = f"{{% if add_generation_prompt %}}{{% if messages[-1].role == 'tool' %}}{again}{{% else %}}{self.opening}{{% endif %}}{self.opens}{{% endif %}}"
        whole = f"{last}{self.tools}{{% for m in messages %}}{turns}{{% endfor %}}{prompt}"
        pieces = re.split(r"(\{\{.*?\}\}|\{%.*?%\})", whole, flags=re.DOTALL)
        return "".join(piece if piece.startswith(("{{", "{%")) else f"{{{{ {piece!r} }}}}" for piece in pieces if piece)

    @property
    def tokens(self) -> list[str]:
        """The special tokens: the markers in the texts."""
        everything = f"{self.call}{self.user}{self.opening}{self.end}{self.call_end}{self.result}{self.thought}{self.opens}{self.dropped}"
        found = re.findall(r"</?[|｜]?[\w:▁]+[|｜]?>", everything)
        pairs = [text for text in found if not text.startswith("</") or text.replace("/", "") in found]
        return [text for text in dict.fromkeys([*pairs, *self.special]) if text not in self.texts]

    def asked(self, text: str) -> str:
        """Return a message of the user."""
        return self.user.replace(CONTENT, text)

    def answer(self, reasoning: str) -> str:
        """Return what the model writes: its reasoning, if it reasons, and the call."""
        return f"{self.written(reasoning, is_kept=True)}{self.call}".removeprefix(self.opens)

    @property
    def again(self) -> str:
        """The beginning of the model's turn after a result."""
        return self.opening if self.reopening is None else self.reopening

    def turn(self, reasoning: str, result: str, *, is_kept: bool, again: bool = False) -> str:
        """Return a past turn of the model, and the result of its call.

        Args:
            reasoning: The turn's reasoning.
            result: The result.
            is_kept: The reasoning is part of it.
            again: The turn follows a result.
        """
        opening = self.again if again else self.opening
        return f"{opening}{self.written(reasoning, is_kept=is_kept)}{self.call}{self.after_call(result)}"

    def after_call(self, result: str, name: str = "edit") -> str:
        """Return the end of a turn with a call, and the call's result."""
        end = self.end if self.call_end is None else self.call_end
        call_id = self.call_id.replace("edit", name)
        texts = {CONTENT: result, JSON_CONTENT: f'"{result}"', CALL_NAME: name, CALL_ID: call_id}
        return end + re.sub(r"\{\{.*?\}\}", lambda place: texts[place[0]], re.sub(r"\{% if.*", "", self.result))

    @property
    def call_id(self) -> str:
        """The id that the model gives the call."""
        return MESSAGE_ID if MESSAGE_ID in self.call else "functions.edit:0"

    def written(self, reasoning: str, *, is_kept: bool) -> str:
        """Return what a prompt has of the reasoning of a past turn."""
        if self.thought is None or not is_kept:
            return self.dropped
        return f"{self.thought[0]}{reasoning}{self.thought[1]}"


def _hy3(suffix: str) -> Turns:
    item = f"<arg_key{suffix}>KEY</arg_key{suffix}>\n<arg_value{suffix}>VALUE</arg_value{suffix}>\n"
    before, after = f"<tool_calls{suffix}>\n", f"\n</tool_calls{suffix}>"
    head, tail = f"<tool_call{suffix}>NAME<tool_sep{suffix}>\n", f"</tool_call{suffix}>"
    return Turns(
        before + head.replace("NAME", "edit") + filled(item) + tail + after,
        before + each(tagged(head, item, tail), "\n") + after,
        user=f"<|user|>{CONTENT}",
        opening="<|assistant|>",
        end="<|eos|>",
        result=f"<|tool|><tool_response{suffix}>{CONTENT}</tool_response{suffix}>",
        thought=(f"<think{suffix}>", f"</think{suffix}>"),
        special=(f"<think{suffix}>", f"</think{suffix}>"),
    )


def _dsml(section: str) -> Turns:
    item = '<｜DSML｜parameter name="KEY" string="{}">VALUE</｜DSML｜parameter>\n'
    string = "{{ 'true' if value is string else 'false' }}"
    before, after = f"\n\n<｜DSML｜{section}>\n", f"</｜DSML｜{section}>"
    written = item.format("true").replace("KEY", "path").replace("VALUE", "a.c")
    written += item.format("false").replace("KEY", "line").replace("VALUE", "2")
    return Turns(
        f'{before}<｜DSML｜invoke name="edit">\n{written}</｜DSML｜invoke>\n{after}',
        before
        + each(tagged('<｜DSML｜invoke name="NAME">\n', item.replace("{}", string), "</｜DSML｜invoke>\n"))
        + after,
        user=f"<｜User｜>{CONTENT}",
        opening="<｜Assistant｜>",
        opens="<think>",
        end="<｜end▁of▁sentence｜>",
        result=f"<function_results>\n<result>{CONTENT}</result>\n</function_results>",
        reopening="\n\n",
        thought=THINK,
        dropped="</think>",
    )


def _llama(call: str, calls: str, **fields: Any) -> Turns:
    given: dict[str, Any] = {
        "user": f"{LLAMA.format('user')}{CONTENT}<|eot_id|>",
        "opening": LLAMA.format("assistant"),
        "end": "<|eot_id|>",
        "result": f"{LLAMA.format('ipython')}{JSON_CONTENT}<|eot_id|>",
    }
    return Turns(call, calls, **(given | fields))


def _mistral(call: str, calls: str, result: str, **fields: Any) -> Turns:
    given: dict[str, Any] = {"user": f"[INST]{CONTENT}[/INST]", "opening": "", "end": "</s>", "result": result}
    special = ("[INST]", "[/INST]", "[TOOL_CALLS]", "[ARGS]", "[CALL_ID]", "[TOOL_RESULTS]", "[/TOOL_RESULTS]")
    return Turns(call, calls, special=(*special, "[THINK]", "[/THINK]"), **(given | fields))


_CODER = "<parameter=KEY>\nVALUE\n</parameter>\n"
_SEED = "<parameter=KEY>VALUE</parameter>\n"
_GLM45 = "<arg_key>KEY</arg_key>\n<arg_value>VALUE</arg_value>\n"
_GLM47 = "<arg_key>KEY</arg_key><arg_value>VALUE</arg_value>"
_LONGCAT = "<longcat_arg_key>KEY</longcat_arg_key>\n<longcat_arg_value>VALUE</longcat_arg_value>\n"
_IFM = "<ifm|arg_key>KEY</ifm|arg_key><ifm|arg_value>VALUE</ifm|arg_value>"
_MINIMAX = '<parameter name="KEY">VALUE</parameter>\n'
_M3 = "]<]minimax[>["
_M3_ITEM = (
    f"{{% if value is not none %}}{_M3}<KEY>{{% if value is string or value is not sequence %}}VALUE{{% else %}}"
    f"{{% for item in value %}}{_M3}<item>{{{{ item }}}}{_M3}</item>{{% endfor %}}{{% endif %}}{_M3}</KEY>{{% endif %}}"
)
_STEP = '<steptml:parameter name="KEY">VALUE</steptml:parameter>'
_MINICPM = '<param name="KEY">VALUE</param>'
_MUSE = '<atem:parameter name="KEY">VALUE</atem:parameter>\n'
_K3 = '<|open|>argument key="KEY" type="KIND"<|sep|>VALUE<|close|>argument<|sep|>'
_PYTHON = "{% for key, value in call.function.arguments.items() %}{{ key }}={{ value | tojson }}{% if not loop.last %}, {% endif %}{% endfor %}"
_GEMMA = (
    "{% for key, value in call.function.arguments | dictsort %}{{ key }}:"
    "{% if value is string %}QUOTE{{ value }}QUOTE{% elif value is sequence %}[{% for item in value %}QUOTE{{ item }}QUOTE"
    "{% if not loop.last %},{% endif %}{% endfor %}]{% else %}{{ value | tojson }}{% endif %}"
    "{% if not loop.last %},{% endif %}{% endfor %}"
)

TURNS: dict[str, Turns] = {
    "json_tools": Turns(
        f"<tool_call>\n{CALL}\n</tool_call>",
        each(f"<tool_call>\n{OBJECT}\n</tool_call>", "\n"),
        result=f"<|im_start|>user\n<tool_response>\n{CONTENT}\n</tool_response><|im_end|>\n",
        thought=THINK_LINES,
        trims=True,
    ),
    "command_r7b": Turns(
        f'<|START_ACTION|>[\n    {{"tool_call_id": "0", "tool_name": "edit", "parameters": {JSON}}}\n]<|END_ACTION|>',
        "<|START_ACTION|>[\n    "
        + each(
            f'{{"tool_call_id": "{{{{ loop.index0 }}}}", "tool_name": "{NAME}", "parameters": {ARGUMENTS}}}', ",\n    "
        )
        + "\n]<|END_ACTION|>",
        user=f"<|START_OF_TURN_TOKEN|><|USER_TOKEN|>{CONTENT}<|END_OF_TURN_TOKEN|>",
        opening="<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>",
        end="<|END_OF_TURN_TOKEN|>",
        result=f"<|START_OF_TURN_TOKEN|><|SYSTEM_TOKEN|><|START_TOOL_RESULT|>[{JSON_CONTENT}]<|END_TOOL_RESULT|><|END_OF_TURN_TOKEN|>",
        thought=("<|START_THINKING|>", "<|END_THINKING|>"),
        kept="always",
        reasoning="m.tool_plan",
    ),
    "command_r": Turns(
        f'Action:\n```json\n[\n    {{\n        "tool_name": "edit",\n        "parameters": {JSON}\n    }}\n]\n```',
        "Action:\n```json\n[\n    "
        + each(f'{{\n        "tool_name": "{NAME}",\n        "parameters": {ARGUMENTS}\n    }}', ",\n    ")
        + "\n]\n```",
        user=f"<|START_OF_TURN_TOKEN|><|USER_TOKEN|>{CONTENT}<|END_OF_TURN_TOKEN|>",
        opening="<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>",
        end="<|END_OF_TURN_TOKEN|>",
        result=f"<|START_OF_TURN_TOKEN|><|SYSTEM_TOKEN|><results>\n{CONTENT}</results><|END_OF_TURN_TOKEN|>",
    ),
    "nemotron_v2": Turns(
        f"<TOOLCALL>[{CALL}]</TOOLCALL>",
        f"<TOOLCALL>[{each(OBJECT, ', ')}]</TOOLCALL>",
        user=f"<SPECIAL_11>User\n{CONTENT}\n",
        opening="<SPECIAL_11>Assistant\n",
        opens="<think>\n",
        end="\n<SPECIAL_12>\n",
        result=f"<SPECIAL_11>User\n<TOOL_RESPONSE>[{CONTENT}]</TOOL_RESPONSE>\n",
        thought=THINK_LINES,
        kept="never",
    ),
    "tool_calls_list": Turns(
        f"<tool_calls>[{CALL}]</tool_calls>",
        f"<tool_calls>[{each(OBJECT, ', ')}]</tool_calls>",
        user=f"<|begin_user|>\n{CONTENT}",
        opening="\n<|begin_assistant|>\n",
        opens="Here are my reasoning steps:\n",
        end="\n<|end|>\n",
        result=f"<|begin_tool_result|>\n{CONTENT}\n",
        thought=("Here are my reasoning steps:\n", "\n[BEGIN FINAL RESPONSE]\n"),
        kept="never",
        texts=("<tool_calls>", "</tool_calls>"),
    ),
    "phi4_mini": Turns(
        f"<|tool_call|>[{CALL}]<|/tool_call|>",
        f"<|tool_call|>[{each(OBJECT, ', ')}]<|/tool_call|>",
        user=f"<|user|>{CONTENT}<|end|>",
        opening="<|assistant|>",
        end="<|end|>",
        result=f"<|tool_response|>{CONTENT}<|end|>",
        special=("<|/tool_call|>",),
    ),
    "granite_20b": Turns(
        f"<function_call> {CALL}",
        each(f"<function_call> {OBJECT}", "\n"),
        user=f"USER: {CONTENT}\n",
        opening="ASSISTANT: ",
        end="\n",
        result=f"FUNCTION RESPONSE: {CONTENT}\n",
    ),
    "granite3": Turns(
        f"<|tool_call|>[{CALL}]",
        f"<|tool_call|>[{each(OBJECT, ', ')}]",
        user=f"<|start_of_role|>user<|end_of_role|>{CONTENT}<|end_of_text|>\n",
        opening="<|start_of_role|>assistant<|end_of_role|>",
        end="<|end_of_text|>\n",
        result=f"<|start_of_role|>tool_response<|end_of_role|>{CONTENT}<|end_of_text|>\n",
        thought=THINK,
        kept="never",
        texts=THINK,
        opens="<think>",
    ),
    "internlm": Turns(
        f'<|action_start|><|plugin|>{{"name": "edit", "parameters": {JSON}}}\n<|action_end|>',
        each(f'<|action_start|><|plugin|>{{"name": "{NAME}", "parameters": {ARGUMENTS}}}\n<|action_end|>'),
        result=f"<|im_start|>environment name=<|plugin|>\n{CONTENT}<|im_end|>\n",
        single=True,
    ),
    "gigachat3": Turns(
        f"<|message_sep|>\n\nfunction call<|role_sep|>\n{CALL}",
        each(f"<|message_sep|>\n\nfunction call<|role_sep|>\n{OBJECT}"),
        user=f"user<|role_sep|>\n{CONTENT}<|message_sep|>\n\n",
        opening="assistant<|role_sep|>\n",
        end="<|message_sep|>\n\n",
        result=f"function result<|role_sep|>\n{CONTENT}<|message_sep|>\n\n",
        single=True,
    ),
    "gigachat3_1": Turns(
        f"<|function_call|>{CALL}",
        each(f"<|function_call|>{OBJECT}"),
        user=f"user<|role_sep|>\n{CONTENT}<|message_sep|>\n\n",
        opening="assistant<|role_sep|>\n",
        end="<|message_sep|>\n\n",
        result=f"function result<|role_sep|>\n{CONTENT}<|message_sep|>\n\n",
        single=True,
    ),
    "firefunction": _llama(
        f"functools[{CALL}]", f"functools[{each(OBJECT, ', ')}]", result=f"{LLAMA.format('tool')}{CONTENT}<|eot_id|>"
    ),
    "llama3_json": _llama(
        f'{{"name": "edit", "parameters": {JSON}}}',
        "{% if m.tool_calls | length > 1 %}{{ raise_exception('one call at a time') }}{% endif %}"
        + each(f'{{"name": "{NAME}", "parameters": {ARGUMENTS}}}'),
        single=True,
        tools='{% for tool in tools or [] %}{{ tool.function | tojson }}\n{% endfor %}{% if tools %}Answer with {"name": function name, "parameters": dictionary}.\n{% endif %}',
    ),
    "bare_json": _llama(f"[{CALL}]", f"[{each(OBJECT, ', ')}]"),
    "glm4": Turns(
        f"edit\n{JSON}",
        "",
        user=f"<|user|>\n{CONTENT}",
        opening="<|assistant|>",
        end="",
        result=f"<|observation|>\n{CONTENT}",
        tools="{% if tools %}<|system|>\n# 可用工具{% for tool in tools %}\n\n## {{ tool.function.name }}\n\n{{ tool.function | tojson }}{% endfor %}{% endif %}",
        single=True,
    ),
    "apertus": Turns(
        f'<|tools_prefix|>[{{"edit": {JSON}}}]<|tools_suffix|>',
        "<|tools_prefix|>[" + each(f'{{"{NAME}": {ARGUMENTS}}}', ", ") + "]<|tools_suffix|>",
        user=f"<|user_start|>{CONTENT}<|user_end|>",
        opening="<|assistant_start|>",
        end="<|assistant_end|>",
        call_end="",
        result=f"[{CONTENT}]",
        reopening="",
        thought=("<|inner_prefix|>", "<|inner_suffix|>"),
        kept="never",
    ),
    "mistral": _mistral(
        f"[TOOL_CALLS]edit[ARGS]{JSON}",
        each(f"[TOOL_CALLS]{NAME}[ARGS]{ARGUMENTS}"),
        f"[TOOL_RESULTS]{CONTENT}[/TOOL_RESULTS]",
        thought=("[THINK]", "[/THINK]"),
        kept="always",
        reasoning="(m.content if m.content is not string and m.content else []) | selectattr('type', 'equalto', 'thinking') | map(attribute='thinking') | join",
    ),
    "mistral_call_id": _mistral(
        f"[TOOL_CALLS]edit[CALL_ID]{MESSAGE_ID}[ARGS]{JSON}",
        each(f"[TOOL_CALLS]{NAME}[CALL_ID]{ID}[ARGS]{ARGUMENTS}"),
        f"[TOOL_RESULTS]{CALL_ID}[TOOL_CONTENT]{CONTENT}[/TOOL_RESULTS]",
    ),
    "mistral_nemo": _mistral(
        f'[TOOL_CALLS][{CALL[:-1]}, "id": "{MESSAGE_ID}"}}]',
        "[TOOL_CALLS][" + each(f'{OBJECT[:-1]}, "id": "{ID}"}}', ", ") + "]",
        f'[TOOL_RESULTS]{{"content": {JSON_CONTENT}, "call_id": "{CALL_ID}"}}[/TOOL_RESULTS]'
        "{% if m.tool_call_id | length != 9 %}{{ raise_exception('ids have nine letters') }}{% endif %}",
    ),
    "kimi_k2": Turns(
        f"<|tool_calls_section_begin|><|tool_call_begin|>functions.edit:0<|tool_call_argument_begin|>{JSON}<|tool_call_end|><|tool_calls_section_end|>",
        "<|tool_calls_section_begin|>"
        + each(f"<|tool_call_begin|>{ID}<|tool_call_argument_begin|>{ARGUMENTS}<|tool_call_end|>")
        + "<|tool_calls_section_end|>",
        user=f"<|im_user|>user<|im_middle|>{CONTENT}<|im_end|>",
        opening="<|im_assistant|>assistant<|im_middle|>",
        end="<|im_end|>",
        result=f"<|im_system|>tool<|im_middle|>## Return of {CALL_ID}\n{CONTENT}<|im_end|>",
        thought=THINK,
    ),
    "deepseek_v3": Turns(
        f"<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>edit\n```json\n{JSON}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
        "<｜tool▁calls▁begin｜>"
        + each(
            f"<｜tool▁call▁begin｜>function<｜tool▁sep｜>{NAME}\n```json\n{{{{ call.function.arguments + '' }}}}\n```<｜tool▁call▁end｜>",
            "\n",
        )
        + "<｜tool▁calls▁end｜>",
        user=f"<｜User｜>{CONTENT}",
        opening="<｜Assistant｜>",
        opens="<think>\n",
        end="<｜end▁of▁sentence｜>",
        result=f"<｜tool▁outputs▁begin｜><｜tool▁output▁begin｜>{CONTENT}<｜tool▁output▁end｜><｜tool▁outputs▁end｜>",
        reopening="",
        thought=THINK_LINES,
        kept="never",
    ),
    "deepseek_v3_1": Turns(
        f"<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>edit<｜tool▁sep｜>{JSON}<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
        "<｜tool▁calls▁begin｜>"
        + each(f"<｜tool▁call▁begin｜>{NAME}<｜tool▁sep｜>{ARGUMENTS}<｜tool▁call▁end｜>")
        + "<｜tool▁calls▁end｜>",
        user=f"<｜User｜>{CONTENT}",
        opening="<｜Assistant｜>",
        opens="<think>",
        end="<｜end▁of▁sentence｜>",
        result=f"<｜tool▁output▁begin｜>{CONTENT}<｜tool▁output▁end｜>",
        reopening="",
        thought=THINK,
        kept="never",
        dropped="</think>",
    ),
    "solar_open": Turns(
        f"<|tool_calls|><|tool_call:begin|>{MESSAGE_ID}<|tool_call:name|>edit<|tool_call:args|>{JSON}<|tool_call:end|>",
        "<|tool_calls|>"
        + each(f"<|tool_call:begin|>{ID}<|tool_call:name|>{NAME}<|tool_call:args|>{ARGUMENTS}<|tool_call:end|>"),
        user=f"<|begin|>user<|content|>{CONTENT}<|end|>",
        opening="<|begin|>assistant",
        end="<|end|>",
        call_end="<|calls|>",
        result=f"<|begin|>tool<|tool_response:begin|>{CALL_ID}<|tool_response:result|>{CONTENT}<|tool_response:end|><|end|>",
        thought=("<|think|>", "<|end|><|begin|>assistant"),
        reasoning="m.reasoning",
        special=("<|tool_call:begin|>", "<|tool_call:name|>", "<|tool_call:args|>", "<|tool_call:end|>", "<|content|>"),
    ),
    "functionary_v3_1": _llama(f"<function=edit>{JSON}</function>", each(f"<function={NAME}>{ARGUMENTS}</function>")),
    "functionary_v3_2": _llama(
        f">>>edit\n{JSON}",
        each(f">>>{NAME}\n{ARGUMENTS}"),
        opens=">>>",
        result=f"{LLAMA.format('tool')}{CONTENT}<|eot_id|>",
    ),
    "harmony": Turns(
        f" to=functions.edit<|channel|>commentary json<|message|>{JSON}",
        each(f" to=functions.{NAME}<|channel|>commentary json<|message|>{ARGUMENTS}"),
        user=f"<|start|>user<|message|>{CONTENT}<|end|>",
        opening="<|start|>assistant",
        end="<|end|>",
        call_end="<|call|>",
        result=f"<|start|>functions.{CALL_NAME} to=assistant<|channel|>commentary<|message|>{JSON_CONTENT}<|end|>",
        thought=("<|channel|>analysis<|message|>", "<|end|><|start|>assistant"),
        reasoning="m.thinking",
        special=("<|channel|>", "<|return|>", "<|constrain|>", "<|call|>"),
        ends=("<|call|>", "<|return|>"),
        model_type="gpt_oss",
        single=True,
    ),
    "qwen3_coder": Turns(
        f"<tool_call>\n<function=edit>\n{filled(_CODER)}</function>\n</tool_call>",
        each(tagged("<tool_call>\n<function=NAME>\n", _CODER, "</function>\n</tool_call>"), "\n"),
        opens="<think>\n",
        result=f"<|im_start|>user\n<tool_response>\n{CONTENT}\n</tool_response><|im_end|>\n",
        thought=THINK_LINES,
        trims=True,
    ),
    "seed_oss": Turns(
        f"<seed:tool_call>\n<function=edit>\n{filled(_SEED)}</function>\n</seed:tool_call>",
        each(tagged("<seed:tool_call>\n<function=NAME>\n", _SEED, "</function>\n</seed:tool_call>"), "\n"),
        user=f"<seed:bos>user\n{CONTENT}<seed:eos>",
        opening="<seed:bos>assistant\n",
        end="<seed:eos>",
        result=f"<seed:bos>tool\n{CONTENT}<seed:eos>",
        thought=("<seed:think>", "</seed:think>"),
        kept="always",
        special=("<seed:think>", "</seed:think>", "<seed:tool_call>", "</seed:tool_call>"),
    ),
    "glm47": Turns(
        f"<tool_call>edit{filled(_GLM47)}</tool_call>",
        each(tagged("<tool_call>NAME", _GLM47, "</tool_call>")),
        user=f"<|user|>{CONTENT}",
        opening="<|assistant|>",
        opens="<think>",
        end="",
        result=f"<|observation|><tool_response>{CONTENT}</tool_response>",
        thought=THINK,
        dropped="</think>",
        trims=True,
    ),
    "glm45": Turns(
        f"\n<tool_call>edit\n{filled(_GLM45)}</tool_call>",
        each(tagged("\n<tool_call>NAME\n", _GLM45, "</tool_call>")),
        user=f"<|user|>\n{CONTENT}",
        opening="<|assistant|>",
        end="",
        result=f"<|observation|>\n<tool_response>\n{CONTENT}\n</tool_response>",
        thought=("\n<think>", "</think>"),
        dropped="\n<think></think>",
        trims=True,
    ),
    "laguna": Turns(
        f"<tool_call>edit{filled(_GLM47)}</tool_call>",
        each(tagged("<tool_call>NAME", _GLM47, "</tool_call>")),
        user=f"<user>\n{CONTENT}\n</user>\n",
        opening="<assistant>\n",
        end="\n</assistant>\n",
        result=f"<tool_response>\n{CONTENT}\n</tool_response>\n",
        thought=THINK,
        dropped="</think>",
        trims=True,
        found_as="glm47",
    ),
    "longcat": Turns(
        f"<longcat_tool_call>edit\n{filled(_LONGCAT)}</longcat_tool_call>",
        each(tagged("<longcat_tool_call>NAME\n", _LONGCAT, "</longcat_tool_call>"), "\n"),
        user=f"[Round 0] USER:{CONTENT}",
        opening=" ASSISTANT:",
        opens="<longcat_think>\n",
        end="</longcat_s>",
        result=f" TOOL:{CONTENT}",
        thought=("<longcat_think>\n", "\n</longcat_think>\n"),
        trims=True,
    ),
    "hy3": _hy3(":opensource"),
    "hy3_plain": _hy3(""),
    "minimax_m2": Turns(
        f'<minimax:tool_call>\n<invoke name="edit">\n{filled(_MINIMAX)}</invoke>\n</minimax:tool_call>',
        "<minimax:tool_call>\n"
        + each(tagged('<invoke name="NAME">\n', _MINIMAX, "</invoke>\n"))
        + "</minimax:tool_call>",
        user=f"]~b]user\n{CONTENT}[e~[\n",
        opening="]~b]ai\n",
        opens="<think>\n",
        end="[e~[\n",
        result=f"]~b]tool\n<response>{CONTENT}</response>[e~[\n",
        thought=THINK_LINES,
        special=("]~b]", "[e~["),
    ),
    "k2_horizon": Turns(
        f"<ifm|tool_calls><ifm|tool_call>edit{filled(_IFM)}</ifm|tool_call></ifm|tool_calls>",
        "<ifm|tool_calls>" + each(tagged("<ifm|tool_call>NAME", _IFM, "</ifm|tool_call>"), "\n") + "</ifm|tool_calls>",
    ),
    "k2_horizon_json": Turns(
        f"<ifm|tool_calls><ifm|tool_call>{CALL}</ifm|tool_call></ifm|tool_calls>",
        "<ifm|tool_calls>" + each(f"<ifm|tool_call>{OBJECT}</ifm|tool_call>", "\n") + "</ifm|tool_calls>",
    ),
    "dots": Turns(
        f'<dots_function_call><invoke name="edit">{filled(_MINIMAX).replace(chr(10), "")}</invoke></dots_function_call>',
        "<dots_function_call>"
        + each(tagged('<invoke name="NAME">', _MINIMAX.rstrip(), "</invoke>"))
        + "</dots_function_call>",
        user=f"<|userprompt|>{CONTENT}<|endofuserprompt|>",
        opening="<|response|>",
        end="<|endofresponse|>",
        result=f"<|observation|>{CONTENT}<|endofobservation|>",
    ),
    "minimax_m3": Turns(
        f'{_M3}<tool_call>\n{_M3}<invoke name="edit">{_M3}<path>a.c{_M3}</path>{_M3}<line>2{_M3}</line>{_M3}</invoke>\n{_M3}</tool_call>',
        f"{_M3}<tool_call>\n"
        + each(tagged(f'{_M3}<invoke name="NAME">', _M3_ITEM, f"{_M3}</invoke>\n"))
        + f"{_M3}</tool_call>",
        user=f"]~b]user\n{CONTENT}[e~[\n",
        opening="]~b]ai\n",
        opens="<mm:think>",
        end="[e~[\n",
        result=f"]~b]tool\n<response>{CONTENT}</response>[e~[\n",
        thought=("<mm:think>", "</mm:think>"),
        special=("]~b]", "[e~[", "<mm:think>", "</mm:think>", _M3),
        texts=("<path>", "</path>", "<line>", "</line>"),
        dropped="</mm:think>",
    ),
    "dsml_function_calls": _dsml("function_calls"),
    "dsml_tool_calls": _dsml("tool_calls"),
    "step3": Turns(
        f'<｜tool_calls_begin｜><｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name="edit">{filled(_STEP)}</steptml:invoke><｜tool_call_end｜><｜tool_calls_end｜>',
        "<｜tool_calls_begin｜>"
        + each(
            tagged(
                '<｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name="NAME">',
                _STEP,
                "</steptml:invoke><｜tool_call_end｜>",
            )
        )
        + "<｜tool_calls_end｜>",
        user=f"<｜BOT｜>user\n{CONTENT}<｜EOT｜>",
        opening="<｜BOT｜>assistant\n",
        opens="<think>\n",
        end="<｜EOT｜>",
        result=f"<｜BOT｜>tool_response\n<｜tool_output_begin｜>{CONTENT}<｜tool_output_end｜><｜EOT｜>",
        thought=THINK_LINES,
        trims=True,
    ),
    "minicpm5": Turns(
        f'<function name="edit">{filled(_MINICPM)}</function>',
        each(
            tagged(
                '<function name="NAME">',
                "{% if value is string and '<' in value %}"
                + _MINICPM.replace("VALUE", "<![CDATA[VALUE]]>")
                + f"{{% else %}}{_MINICPM}{{% endif %}}",
                "</function>",
            )
        ),
        result=f"<|im_start|>user\n<tool_response>\n{CONTENT}\n</tool_response><|im_end|>\n",
        thought=THINK_LINES,
        texts=("</function>",),
    ),
    "muse_spark": Turns(
        f'to=edit<|message|><atem:function_calls>\n<atem:invoke name="edit">\n{filled(_MUSE)}</atem:invoke>\n</atem:function_calls>',
        "to={{ m.tool_calls[0].function.name }}<|message|><atem:function_calls>\n"
        + each(tagged('<atem:invoke name="NAME">\n', _MUSE, "</atem:invoke>\n"))
        + "</atem:function_calls>",
        user=f"<|start|>user<|message|>{CONTENT}<|eot|>",
        opening="<|start|>assistant ",
        end="<|eot|>",
        result=f"<|start|>tool<|message|>{CONTENT}<|eot|>",
        thought=("to=self<|message|>", "<|eom|><|start|>assistant "),
        special=("<|eom|>",),
    ),
    "kimi_k3": Turns(
        '<|open|>response<|sep|><|close|>response<|sep|><|open|>tools<|sep|><|open|>call tool="edit" index="1"<|sep|>'
        '<|open|>argument key="path" type="string"<|sep|>a.c<|close|>argument<|sep|>'
        '<|open|>argument key="line" type="number"<|sep|>2<|close|>argument<|sep|><|close|>call<|sep|><|close|>tools<|sep|>',
        "<|open|>response<|sep|><|close|>response<|sep|><|open|>tools<|sep|>"
        + each(
            tagged(
                '<|open|>call tool="NAME" index="{{ loop.index }}"<|sep|>',
                _K3.replace(
                    "KIND",
                    "{{ 'string' if value is string else 'boolean' if value is boolean else 'null' if value is none "
                    "else 'number' if value is number else 'array' }}",
                ),
                "<|close|>call<|sep|>",
            )
        )
        + "<|close|>tools<|sep|>",
        user=f'<|open|>message role="user"<|sep|>{CONTENT}<|close|>message<|sep|><|end_of_msg|>',
        opening='<|open|>message role="assistant"<|sep|>',
        opens="<|open|>think<|sep|>",
        end="<|close|>message<|sep|><|end_of_msg|>",
        result=f'<|open|>message role="tool" tool="{CALL_NAME}"<|sep|>{CONTENT}<|close|>message<|sep|><|end_of_msg|>',
        thought=("<|open|>think<|sep|>", "<|close|>think<|sep|>"),
        kept="always",
        dropped="<|open|>think<|sep|><|close|>think<|sep|>",
    ),
    "pythonic": Turns(
        "<|tool_call_start|>[edit(path='a.c', line=2)]<|tool_call_end|>",
        "<|tool_call_start|>["
        + each(
            NAME
            + "({% for key, value in call.function.arguments.items() %}{{ key }}={% if value is string %}'{{ value }}'{% else %}{{ value | string }}{% endif %}{% if not loop.last %}, {% endif %}{% endfor %})",
            ", ",
        )
        + "]<|tool_call_end|>",
        thought=THINK,
        reasoning="m.thinking",
    ),
    "olmo3": Turns(
        '<function_calls>edit(path="a.c", line=2)</function_calls>',
        "<function_calls>" + each(f"{NAME}({_PYTHON})", "\n") + "</function_calls>",
        opens="<think>",
        result=f"<|im_start|>environment\n{CONTENT}<|im_end|>\n",
        thought=THINK,
        kept="never",
        texts=(*THINK, "<function_calls>", "</function_calls>"),
    ),
    "llama4_pythonic": Turns(
        '<|python_start|>[edit(path="a.c", line=2)]<|python_end|>',
        f"<|python_start|>[{each(f'{NAME}({_PYTHON})', ', ')}]<|python_end|>",
        user=f"<|header_start|>user<|header_end|>\n\n{CONTENT}<|eot|>",
        opening="<|header_start|>assistant<|header_end|>\n\n",
        end="<|eot|>",
        result=f"<|header_start|>ipython<|header_end|>\n\n{JSON_CONTENT}<|eot|>",
    ),
    "gemma3_code": Turns(
        '```tool_code\nedit(path="a.c", line=2)\n```',
        "",
        user=f"<start_of_turn>user\n{CONTENT}<end_of_turn>\n",
        opening="<start_of_turn>model\n",
        end="<end_of_turn>\n",
        result=f"<start_of_turn>user\n```tool_output\n{CONTENT}\n```<end_of_turn>\n",
        tools="",
        model_type="gemma3",
    ),
    "gemma4": Turns(
        '<|tool_call>call:edit{line:2,path:<|"|>a.c<|"|>}<tool_call|>',
        each("<|tool_call>call:" + NAME + "{{ '{' }}" + _GEMMA.replace("QUOTE", '<|"|>') + "{{ '}' }}<tool_call|>"),
        user=f"<|turn>user\n{CONTENT}<turn|>\n",
        opening="<|turn>model\n",
        end="<turn|>\n",
        call_end="",
        result=f'<|tool_response>response:{CALL_NAME}{{value:<|"|>{CONTENT}<|"|>}}<tool_response|>',
        reopening="",
        thought=("<|channel>thought\n", "\n<channel|>"),
        special=(
            "<|tool_call>",
            "<tool_call|>",
            '<|"|>',
            "<|channel>",
            "<channel|>",
            "<|turn>",
            "<turn|>",
            "<|tool_response>",
        ),
    ),
    "function_gemma": Turns(
        "<start_function_call>call:edit{line:2,path:<escape>a.c<escape>}<end_function_call>",
        each(
            "<start_function_call>call:"
            + NAME
            + "{{ '{' }}"
            + _GEMMA.replace("QUOTE", "<escape>")
            + "{{ '}' }}<end_function_call>"
        ),
        user=f"<start_of_turn>user\n{CONTENT}<end_of_turn>\n",
        opening="<start_of_turn>model\n",
        end="<end_of_turn>\n",
        call_end="",
        result=f"<start_function_response>response:{CALL_NAME}{{value:<escape>{CONTENT}<escape>}}<end_function_response>",
        reopening="",
    ),
}
"""The families by the names of their formats."""
