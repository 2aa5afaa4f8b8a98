"""Tool calls as models write them, in every format."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lmwire_protocol import Tool
from lmwire_protocol.messages import Function
from lmwire_worker.tool_parsers import FORMATS, ToolFormat, WrittenCall

Call = tuple[str, Mapping[str, Any]]
"""A function's name and its arguments."""

PROPERTIES = {
    "city": {"type": "string"},
    "note": {"type": "string"},
    "days": {"type": "integer"},
    "exact": {"type": "boolean"},
    "tags": {"type": "array"},
    "place": {"type": "object"},
}


def _first_and_last_of_each_parser() -> set[str]:
    first = {type(form.make_parser([])): name for name, form in reversed(FORMATS.items())}
    last = {type(form.make_parser([])): name for name, form in FORMATS.items()}
    return {*first.values(), *last.values()}


SAMPLE = _first_and_last_of_each_parser()
"""Formats for each commit, where a test of a format takes long: two of each kind of parser, if it has as many."""


def tool(name: str) -> Tool:
    """Return a tool that takes any of the parameters."""
    return Tool(function=Function(name=name, parameters={"type": "object", "properties": PROPERTIES}))


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _plain(value: Any) -> str:
    """Return a value as it stands between tags: strings bare, everything else as JSON."""
    return value if isinstance(value, str) else _json(value)


def _joined(write: Callable[[str, Mapping[str, Any]], str], between: str = "\n") -> Callable[[Sequence[Call]], str]:
    return lambda calls: between.join(write(name, arguments) for name, arguments in calls)


def _gemma(quote: str) -> Callable[[Sequence[Call]], str]:
    def value(argument: Any) -> str:
        match argument:
            case str():
                return quote + argument + quote
            case dict():
                return "{" + ",".join(f"{key}:{value(item)}" for key, item in argument.items()) + "}"
            case list():
                return "[" + ",".join(map(value, argument)) + "]"
        return _json(argument)

    return _joined(lambda name, arguments: f"call:{name}{value(arguments)}", "")


def _tags(head: str, parameter: str, end: str) -> Callable[[Sequence[Call]], str]:
    def write(name: str, arguments: Mapping[str, Any]) -> str:
        parameters = (parameter.format(key, _plain(value)) for key, value in arguments.items())
        return head.format(name) + "".join(parameters) + end

    return _joined(write)


def _kimi_k3(name: str, arguments: Mapping[str, Any]) -> str:
    def argument(key: str, value: Any) -> str:
        kind = "string" if isinstance(value, str) else "object"
        head = f'<|open|>argument key="{key}" type="{kind}"<|sep|>'
        return f"{head}{_plain(value)}<|close|>argument<|sep|>"

    body = "".join(argument(key, value) for key, value in arguments.items())
    return f'<|open|>call tool="{name}" index="1"<|sep|>{body}<|close|>call<|sep|>'


def _python(name: str, arguments: Mapping[str, Any]) -> str:
    return f"{name}({', '.join(f'{key}={value!r}' for key, value in arguments.items())})"


def _object(name: str, arguments: Mapping[str, Any]) -> str:
    return _json({"name": name, "arguments": arguments})


_KEY_VALUE = _tags("{}\n", "<arg_key>{}</arg_key>\n<arg_value>{}</arg_value>\n", "")

WRITERS: dict[str, Callable[[Sequence[Call]], str]] = {
    "function_gemma": _gemma("<escape>"),
    "gemma4": _gemma('<|"|>'),
    "glm47": _KEY_VALUE,
    "json_tools": lambda calls: f"\n{_joined(_object)(calls)}\n",
    "kimi_k2": lambda calls: "".join(
        f"<|tool_call_begin|>functions.{name}:{i}<|tool_call_argument_begin|>{_json(arguments)}<|tool_call_end|>"
        for i, (name, arguments) in enumerate(calls)
    ),
    "kimi_k3": _joined(_kimi_k3),
    "laguna": _KEY_VALUE,
    "longcat": _tags("{}\n", "<longcat_arg_key>{}</longcat_arg_key>\n<longcat_arg_value>{}</longcat_arg_value>\n", ""),
    "minicpm5": _tags('"{}">', '<param name="{}">{}</param>', ""),
    "minimax_m2": _tags('\n<invoke name="{}">\n', '<parameter name="{}">{}</parameter>\n', "</invoke>\n"),
    "mistral": _joined(lambda name, arguments: f"{name}[ARGS]{_json(arguments)}", "[TOOL_CALLS]"),
    "muse_spark": _tags('<atem:invoke name="{}">', '<atem:parameter name="{}">{}</atem:parameter>', "</atem:invoke>"),
    "pythonic": lambda calls: f"[{_joined(_python, ', ')(calls)}]",
    "qwen3_coder": _tags("\n<function={}>\n", "<parameter={}>\n{}\n</parameter>\n", "</function>\n"),
    "harmony": _joined(lambda name, arguments: f"functions.{name} <|constrain|>json<|message|>{_json(arguments)}"),
    "llama3_json": _joined(lambda name, arguments: _json({"name": name, "parameters": arguments}), "; "),
    "gemma3_code": lambda calls: f"\n{_joined(_python)(calls)}",
}
"""Writers of a section of calls, by format."""


def _written(tool_format: ToolFormat) -> Callable[[Sequence[Call]], str]:
    """Return a writer of the texts of a format."""

    def write(calls: Sequence[Call]) -> str:
        texts = [tool_format.shape.write(WrittenCall(*call, f"{index:09}"), index) for index, call in enumerate(calls)]
        return f"{tool_format.before}{(tool_format.between_calls or ' ').join(texts)}{tool_format.after}"

    return write


WRITERS |= {name: _written(found) for name, found in FORMATS.items() if name not in WRITERS}

ONE_CALL = frozenset(
    {"glm45", "glm47", "laguna", "longcat", "minicpm5", "harmony", "functionary_v3_1", "functionary_v3_2", "glm4"}
)
"""Formats whose sections hold one call."""
