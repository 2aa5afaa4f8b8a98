"""Rewrite conversations for templates without tools, without system messages, or with strictly alternating roles."""

import json
from collections.abc import Callable, Sequence
from itertools import groupby, takewhile

from msgspec.structs import replace

from lmwire_protocol import Tool

from ..output_parsing import FAMILIES
from ..tool_parsers import ToolFormat, WrittenCall
from .python_tool_signatures import signature
from .template_probe import TemplateTraits
from .turns import ROLES, Turn

_BREAK = "\n\n"


def can_put_calls_into_text(tool_format: ToolFormat) -> bool:
    """Return whether the prompt's text can describe this format of tool calls to the model."""
    return tool_format.name not in FAMILIES


def put_tools_into_text(
    turns: Sequence[Turn], tools: Sequence[Tool], tool_format: ToolFormat, *, calls: bool = True, results: bool = True
) -> list[Turn]:
    """Return the turns with tools in the system text, calls in the assistant's text and results in the user's text.

    Args:
        turns: The conversation.
        tools: The tools to describe; empty to describe none.
        tool_format: The format of calls.
        calls: Put calls into text. Otherwise, the template writes them.
        results: Put results into text. Otherwise, the template writes them.
    """
    python = _is_python(tool_format)
    folded = _leading_system_turns(turns)
    rest = turns[len(folded) :]
    if tools:
        folded.append(Turn("system", _python_tools(tools) if python else _json_tools(tools, tool_format)))
    for role, group in groupby(rest, key=lambda turn: turn.role):
        if role == "tool" and results:
            folded.append(Turn("user", "\n".join(_result_text(turn, python=python) for turn in group)))
        elif calls:
            folded += [_put_calls_into_text(turn, tool_format) for turn in group]
        else:
            folded += group
    return folded


def put_roles_into_text(turns: Sequence[Turn], writes_role: Callable[[str], bool]) -> list[Turn]:
    """Return the turns with roles that the template does not know in the user's text.

    Args:
        turns: The conversation.
        writes_role: Returns whether the template writes messages of a role.
    """
    unknown = {turn.role for turn in turns if turn.role not in ROLES}
    unknown = {role for role in unknown if not writes_role(role)}
    return [
        replace(turn, role="user", text=f"{turn.role}: {turn.text}") if turn.role in unknown else turn for turn in turns
    ]


def adapt_roles(turns: Sequence[Turn], traits: TemplateTraits) -> list[Turn]:
    """Return the turns with roles that the template accepts.

    System messages become one at the front, or part of the user's text. Neighbours of one role are joined if needed.
    If the template demands a user's turn before the assistant's first, an empty one opens the conversation.
    """
    front = _leading_system_turns(turns)
    rest = list(turns[len(front) :])
    if not traits.late_system:
        rest = [replace(turn, role="user") if turn.role == "system" else turn for turn in rest]
    if rest and rest[0].role == "assistant" and not traits.assistant_first:
        rest = [Turn("user", ""), *rest]
    if front:
        system = Turn("system", _BREAK.join(turn.text for turn in front if turn.text))
        rest = [system, *rest] if traits.system else _prepend_to_user(system.text, rest)
    return rest if traits.same_role_neighbours else _join_neighbours(rest)


def _leading_system_turns(turns: Sequence[Turn]) -> list[Turn]:
    """Return the system messages at the start of a conversation."""
    return list(takewhile(lambda turn: turn.role == "system", turns))


def _prepend_to_user(text: str, turns: list[Turn]) -> list[Turn]:
    if not text:
        return turns or [Turn("user", "")]
    if turns and turns[0].role == "user":
        return [replace(turns[0], text=_BREAK.join(filter(None, (text, turns[0].text)))), *turns[1:]]
    return [Turn("user", text), *turns]


def _join_neighbours(turns: Sequence[Turn]) -> list[Turn]:
    joined: list[Turn] = []
    for turn in turns:
        if joined and _are_neighbours(joined[-1], turn):
            before = joined.pop()
            text = _BREAK.join(text for text in (before.text, turn.text) if text)
            reasoning = _BREAK.join(text for text in (before.reasoning, turn.reasoning) if text)
            joined.append(replace(turn, text=text, reasoning=reasoning))
        else:
            joined.append(turn)
    return joined


def _are_neighbours(before: Turn, turn: Turn) -> bool:
    return turn.role == before.role and turn.role in ("user", "assistant") and not (before.calls or turn.calls)


def _put_calls_into_text(turn: Turn, tool_format: ToolFormat) -> Turn:
    if not turn.calls:
        return turn
    calls = tool_format.write([WrittenCall(call.name, call.arguments, call.id) for call in turn.calls])
    return replace(turn, text=f"{turn.text}\n{calls}" if turn.text else calls, calls=())


def _json_tools(tools: Sequence[Tool], tool_format: ToolFormat) -> str:
    described = "\n".join(_json(_tool_schema(tool)) for tool in tools)
    if tool_format.name == "json_tools":
        how = (
            "To call a function, answer with its name and its arguments as JSON between these marks, and nothing else:"
        )
        example = (
            f'{tool_format.start}\n{{"name": <function-name>, "arguments": <args-json-object>}}\n{tool_format.end}'
        )
    else:
        how = "To call a function, answer with its name and its arguments in this form, and nothing else:"
        example = tool_format.write([WrittenCall("function-name", {"argument-name": "value"}, "000000000")])
    return (
        "# Tools\n\nYou may call these functions, each described by a line of JSON:\n"
        f"<tools>\n{described}\n</tools>\n\n{how}\n{example}\n"
        "Its result comes between <tool_response> and </tool_response>."
    )


def _tool_schema(tool: Tool) -> dict[str, object]:
    function = tool.function
    fields = {"name": function.name, "description": function.description, "parameters": function.parameters}
    return {name: value for name, value in fields.items() if value}


def _python_tools(tools: Sequence[Tool]) -> str:
    """Return Google's instruction for Gemma 3, and the tools as Python functions.

    Google's text ends with a request to think before a ```tool_call```. It is left out: calls come in ```tool_code```.

    See https://www.philschmid.de/gemma-function-calling.
    """
    signatures = _BREAK.join(signature(tool.function) for tool in tools)
    return (
        "At each turn, if you decide to invoke any of the function(s), it should be wrapped with ```tool_code```. "
        "The python methods described below are imported and available, you can only use defined methods. "
        "The generated code should be readable and efficient. "
        "The response to a method will be wrapped in ```tool_output``` "
        "use it to call more tools or generate a helpful, friendly response.\n\n"
        f"The following Python methods are available:\n\n```python\n{signatures}\n```"
    )


def _result_text(turn: Turn, *, python: bool) -> str:
    if python:
        return f"```tool_output\n{turn.text}\n```"
    return f"<tool_response>\n{turn.text}\n</tool_response>"


def _is_python(tool_format: ToolFormat) -> bool:
    return tool_format.name == "gemma3_code"


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
