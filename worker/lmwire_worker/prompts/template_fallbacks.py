"""Conversations rewritten for templates that know less: no tools, no system messages, no two messages of one role."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import groupby, takewhile

from lmwire_protocol import Tool

from ..tool_parsers import ToolFormat
from .python_tool_signatures import call_text, signature
from .template_probe import Traits
from .turns import Call, Turn

_BREAK = "\n\n"


def takes_folding(tool_format: ToolFormat) -> bool:
    """Whether a model can be told in plain text to write its calls like this."""
    return tool_format.name == "json_tools" or _is_python(tool_format)


def fold_tools(turns: Sequence[Turn], tools: Sequence[Tool], tool_format: ToolFormat) -> list[Turn]:
    """Tools into the system message, calls into the assistant's text, results into the user's."""
    python = _is_python(tool_format)
    folded = _front(turns)
    rest = turns[len(folded) :]
    if tools:
        folded.append(Turn("system", (_python_tools if python else _json_tools)(tools, tool_format)))
    for role, group in groupby(rest, key=lambda turn: turn.role):
        if role == "tool":
            results = "\n".join(_result(turn, python=python) for turn in group)
            folded.append(Turn("user", results))
        else:
            folded += [_say_calls(turn, tool_format, python=python) for turn in group]
    return folded


def fold_roles(turns: Sequence[Turn], traits: Traits) -> list[Turn]:
    """One system message at the front or none, and neighbours of one role joined, as the template needs it."""
    front = _front(turns)
    rest = list(turns[len(front) :])
    if not traits.late_system:
        rest = [replace(turn, role="user") if turn.role == "system" else turn for turn in rest]
    if front:
        system = Turn("system", _BREAK.join(turn.text for turn in front if turn.text))
        rest = [system, *rest] if traits.system else _into_user(system.text, rest)
    return rest if traits.neighbours else _joined(rest)


def _front(turns: Sequence[Turn]) -> list[Turn]:
    """The system messages that a conversation begins with."""
    return list(takewhile(lambda turn: turn.role == "system", turns))


def _into_user(text: str, turns: list[Turn]) -> list[Turn]:
    if not text:
        return turns or [Turn("user", "")]
    if turns and turns[0].role == "user":
        return [replace(turns[0], text=f"{text}{_BREAK}{turns[0].text}"), *turns[1:]]
    return [Turn("user", text), *turns]


def _joined(turns: Sequence[Turn]) -> list[Turn]:
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


def _say_calls(turn: Turn, tool_format: ToolFormat, *, python: bool) -> Turn:
    if not turn.calls:
        return turn
    calls = _python_calls(turn.calls, tool_format) if python else _json_calls(turn.calls, tool_format)
    return replace(turn, text=f"{turn.text}\n{calls}" if turn.text else calls, calls=())


def _json_tools(tools: Sequence[Tool], tool_format: ToolFormat) -> str:
    described = "\n".join(_json(_described(tool)) for tool in tools)
    return (
        "# Tools\n\nYou may call these functions, each described by a line of JSON:\n"
        f"<tools>\n{described}\n</tools>\n\n"
        "To call a function, answer with its name and its arguments as JSON between these marks, and nothing else:\n"
        f'{tool_format.start}\n{{"name": <function-name>, "arguments": <args-json-object>}}\n{tool_format.end}\n'
        "Its result comes between <tool_response> and </tool_response>."
    )


def _json_calls(calls: Iterable[Call], tool_format: ToolFormat) -> str:
    return "\n".join(
        f"{tool_format.start}\n{_json({'name': call.name, 'arguments': call.arguments})}\n{tool_format.end}"
        for call in calls
    )


def _described(tool: Tool) -> dict[str, object]:
    function = tool.function
    fields = {"name": function.name, "description": function.description, "parameters": function.parameters}
    return {name: value for name, value in fields.items() if value}


def _python_tools(tools: Sequence[Tool], tool_format: ToolFormat) -> str:
    signatures = _BREAK.join(signature(tool.function) for tool in tools)
    return (
        "You may call the Python functions below, which are imported already, and no others. "
        f"To call one, write nothing but the call in a {tool_format.start} block:\n"
        f"{tool_format.start}\nfunction_name(argument=value)\n```\n"
        "Its result comes in a ```tool_output block; use it to call further functions or to answer.\n\n"
        f"```python\n{signatures}\n```"
    )


def _python_calls(calls: Iterable[Call], tool_format: ToolFormat) -> str:
    lines = "\n".join(call_text(call.name, call.arguments) for call in calls)
    return f"{tool_format.start.rstrip()}\n{lines}\n```"


def _result(turn: Turn, *, python: bool) -> str:
    if python:
        return f"```tool_output\n{turn.text}\n```"
    return f"<tool_response>\n{turn.text}\n</tool_response>"


def _is_python(tool_format: ToolFormat) -> bool:
    return tool_format.start.startswith("```tool_code")


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
