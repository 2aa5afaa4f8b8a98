"""How each format of tool calls is written: what stands where between a section's markers."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from keyword import kwlist
from typing import Any, Final

from .gemma import GemmaCall
from .parameters import Parameter, RawText, checked_name, loosened, parameters, unsupported
from .rules import Rules, quoted

TAG_NAME: Final = re.compile(r"[^\s<>\"'=:/]+")
PATH_NAME: Final = re.compile(r"[\w.-]+", re.ASCII)
PYTHON_NAME: Final = re.compile(rf"(?!(?:{'|'.join(kwlist)})\Z)[A-Za-z_]\w*", re.ASCII)
DOTTED_WORD: Final = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", re.ASCII)
SPACES: Final = {"item_separator": ", ", "key_separator": ": "}
NUMBER: Final = "\0"
"""Stands for any number in fixed text."""
PYTHON_ESCAPES: Final = {"json_allowed_escapes": '"\\bfnrt'}
"""What JSON and Python write alike in a string."""

Call = Callable[[Rules, str, dict[str, Any], str], str]
"""Adds the rules of a call and returns its expression: of the function of a name, with arguments that a schema holds
for, at a path of the request."""


@dataclass(frozen=True, slots=True)
class Layout:
    """One format's way to write a section of calls."""

    call: Call
    before: str = ""
    """Between the start marker and the first call."""
    between: str | None = None
    """Between two calls of a section. None: a section holds one."""
    after: str = ""
    """Between the last call and the end marker."""
    again: str | None = None
    """Between two sections. None: an answer holds one."""

    def loosened(self, schema: dict[str, Any]) -> dict[str, Any]:
        """As little of a schema as a call needs to be written."""
        return {"type": "object"} if isinstance(self.call, _WithJson) else loosened(schema)


@dataclass(frozen=True, slots=True)
class _WithJson:
    """A name, then the arguments as one JSON object."""

    before: str
    """What stands before the name."""
    middle: str
    """What stands between the name and the object."""
    after: str = ""
    """What stands behind the object."""
    names: re.Pattern[str] | None = None
    """The names that can be written as they are. None: names are JSON strings."""
    spaced: bool = True
    """The object is written as most chat templates write JSON, with a space behind each comma and colon."""

    def __call__(self, rules: Rules, name: str, schema: dict[str, Any], path: str) -> str:
        name = quoted(name) if self.names is None else checked_name(name, self.names, f"{path}.name")
        parts = [
            _fixed(rules, f"{self.before}{name}{self.middle}"),
            rules.json(schema, **(SPACES if self.spaced else {})),
            rules.literal(self.after),
        ]
        return " ".join(filter(None, parts))


@dataclass(frozen=True, slots=True)
class _Tagged:
    """A name, then each parameter by itself. Strings stand there as they are; anything else as JSON."""

    head: str
    """What stands before the parameters, with `{}` for the function's name."""
    tag: str
    """What stands before a value, with `{}` for the parameter's name and `{kind}` for its type."""
    end: str
    """What stands behind a value."""
    tail: str = ""
    """What stands behind the parameters."""
    text: RawText | None = None
    """How strings are written. None: as JSON."""
    mixed: bool = False
    """A parameter of any types is read back from its JSON. Off, it must have one type."""
    separator: str = ""
    names: re.Pattern[str] = TAG_NAME
    parameter_names: re.Pattern[str] = TAG_NAME
    json_options: Mapping[str, Any] = field(default_factory=lambda: SPACES)

    def __call__(self, rules: Rules, name: str, schema: dict[str, Any], path: str) -> str:
        checked_name(name, self.names, f"{path}.name")
        items = [
            (self._parameter(rules, parameter), parameter.required)
            for parameter in parameters(schema, f"{path}.parameters")
        ]
        parts = [
            _fixed(rules, self.head.format(name)),
            rules.sequence(items, self.separator),
            rules.literal(self.tail),
        ]
        return " ".join(filter(None, parts))

    def _parameter(self, rules: Rules, parameter: Parameter) -> str:
        name = checked_name(parameter.name, self.parameter_names, parameter.path)
        kind = parameter.schema["type"] if parameter.is_typed else "object"
        tag = rules.literal(self.tag.format(name, kind=kind))
        if self.text is not None and parameter.is_string:
            return rules.rule(f"{tag} {self.text.rule(rules, parameter.schema, parameter.path, self.end)}")
        if not self.mixed and not parameter.is_typed:
            raise unsupported(parameter.path, "in this model's tool calls a parameter must have one `type`")
        return rules.rule(f"{tag} {rules.json(parameter.schema, **self.json_options)} {rules.literal(self.end)}")


def _fixed(rules: Rules, text: str) -> str:
    """An expression for fixed text with numbers in it."""
    return " /[0-9]{1,4}/ ".join(map(rules.literal, text.split(NUMBER)))


def _key_value(prefix: str = "", line: str = "") -> Layout:
    key, value, call = f"{prefix}arg_key", f"{prefix}arg_value", f"</{prefix}tool_call>"
    text = RawText(banned=[call], trimmed=True)
    tagged = _Tagged(f"{{}}{line}", f"<{key}>{{}}</{key}>{line}<{value}>", f"</{value}>{line}", text=text, mixed=True)
    return Layout(tagged, again="\n" if line else "")


_PYTHON: Final = _Tagged(
    "{}(",
    "{}=",
    "",
    ")",
    mixed=True,
    separator=", ",
    names=DOTTED_WORD,
    parameter_names=PYTHON_NAME,
    json_options=SPACES | PYTHON_ESCAPES,
)

LAYOUTS: Final[dict[str, Layout]] = {
    "json_tools": Layout(_WithJson('{"name": ', ', "arguments": ', "}"), before="\n", after="\n", again="\n"),
    "llama3_json": Layout(_WithJson('{"name": ', ', "parameters": ', "}")),
    "mistral": Layout(_WithJson("", "[ARGS]", names=PATH_NAME), again=""),
    "kimi_k2": Layout(
        _WithJson(
            "<|tool_call_begin|>functions.",
            f":{NUMBER}<|tool_call_argument_begin|>",
            "<|tool_call_end|>",
            names=PATH_NAME,
        ),
        between="",
    ),
    "kimi_k3": Layout(
        _Tagged(
            f'<|open|>call tool="{{}}" index="{NUMBER}"<|sep|>',
            '<|open|>argument key="{}" type="{kind}"<|sep|>',
            "<|close|>argument<|sep|>",
            "<|close|>call<|sep|>",
            text=RawText(),
            mixed=True,
        ),
        between="",
    ),
    "harmony": Layout(_WithJson("functions.", " <|constrain|>json<|message|>", names=PATH_NAME, spaced=False)),
    "qwen3_coder": Layout(
        _Tagged(
            "<function={}>\n",
            "<parameter={}>\n",
            "\n</parameter>\n",
            "</function>",
            text=RawText(banned=["</parameter>", "</tool_call>"], null=True),
        ),
        before="\n",
        after="\n",
        again="\n",
    ),
    "glm47": _key_value(),
    "laguna": _key_value(),
    "longcat": _key_value("longcat_", "\n"),
    "minimax_m2": Layout(
        _Tagged(
            '<invoke name="{}">\n',
            '<parameter name="{}">',
            "</parameter>\n",
            "</invoke>\n",
            text=RawText(banned=["</parameter>", "</invoke>", "</minimax:tool_call>"], trimmed=True, null=True),
        ),
        before="\n",
        between="",
    ),
    "minicpm5": Layout(
        _Tagged(
            '"{}">',
            '<param name="{}">',
            "</param>",
            text=RawText(banned=["<", "&"], trimmed=True, null=True),
        ),
        again="",
    ),
    "muse_spark": Layout(
        _Tagged(
            '<atem:invoke name="{}">\n',
            '<atem:parameter name="{}">',
            "</atem:parameter>\n",
            "</atem:invoke>\n",
            mixed=True,
        ),
        before="\n",
        between="",
    ),
    "pythonic": Layout(_PYTHON, before="[", between=", ", after="]"),
    "gemma3_code": Layout(_PYTHON, before="\n", between="\n"),
    "gemma4": Layout(GemmaCall('<|"|>'), again=""),
    "function_gemma": Layout(GemmaCall("<escape>"), again=""),
}
"""Every format by its name in the table of formats."""
