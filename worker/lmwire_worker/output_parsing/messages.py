"""Families whose answers are a sequence of messages, each with a header that has its channel or recipient.

gpt-oss (harmony):

    <|channel|>analysis<|message|>some reasoning<|end|>
    <|start|>assistant<|channel|>commentary<|message|>what it is about to do<|end|>
    <|start|>assistant<|channel|>commentary to=functions.NAME <|constrain|>json<|message|>{...}<|call|>
    <|start|>assistant to=functions.NAME<|channel|>commentary json<|message|>{...}<|call|>
    <|start|>assistant<|channel|>final<|message|>the answer<|return|>

A header's recipient can come before or after its channel. The text after `to=` is the section of a call: the parser
receives the name, the rest of the header, <|message|> and the body. Other recipients than functions are `python`,
`browser.search` or `assistant`. The header of a message to them is dropped. Its body is content on the channel `final`,
and reasoning on others. See
https://cookbook.openai.com/articles/openai-harmony.

Muse Spark:

    to=self<|message|>reasoning<|eom|>
    <|start|>assistant to=NAME<|message|><atem:function_calls>...
    <|start|>assistant to=user<|message|>answer<|eot|>

Solar Open:

    <|think|>reasoning<|end|><|begin|>assistant<|content|>answer<|end|><|begin|>assistant<|tool_calls|>...

Functionary 3.2, whose headers are lines:

    >>>all
    the answer
    >>>NAME
    {...}
"""

from typing import Final

from msgspec import Struct

from lmwire_protocol.imports import lazy_pattern

from .families import ReasoningMarkers
from .states import CALL, CONTENT, HEADER, LOST_CALL, REASONING, State


class MessageFamily(Struct, frozen=True):
    """The markup of a family's messages."""

    states: dict[str, State]
    initial: str
    """Name of the state at the start of the assistant's turn."""
    reasoning: ReasoningMarkers | None
    """The markers around reasoning; None for a family without."""


HARMONY_TOKENS: Final = frozenset({"<|start|>", "<|channel|>", "<|message|>", "<|end|>"})
"""Special tokens in the vocabulary of gpt-oss."""

_REASONING_HEADER: Final = "reasoning header"
_HARMONY_ENDS: Final = {"<|end|>": HEADER, "<|call|>": HEADER, "<|return|>": HEADER}
_HARMONY_STARTS: Final = {
    "<|start|>assistant": HEADER,
    "<|channel|>analysis": _REASONING_HEADER,
    "<|channel|>commentary": HEADER,
    "<|channel|>final": HEADER,
}
_HARMONY: Final = {**_HARMONY_ENDS, **_HARMONY_STARTS}
_OTHER_HEADER: Final = lazy_pattern(
    r"\s*(?!functions\.)(?P<recipient>[^\s<]+)(?:(?!<\|message\|>)[\s\S])*<\|message\|>"
)
HARMONY: Final = MessageFamily(
    {
        HEADER: State({**_HARMONY, "to=": CALL, "<|message|>": CONTENT}, kind="header"),
        _REASONING_HEADER: State({**_HARMONY, "to=": CALL, "<|message|>": REASONING}, "reasoning", "header"),
        CONTENT: State(_HARMONY),
        REASONING: State(_HARMONY, "reasoning"),
        CALL: State({**_HARMONY_ENDS, "<|start|>assistant": HEADER}, kind="call", other_header=_OTHER_HEADER),
    },
    HEADER,
    ("<|channel|>analysis<|message|>", "<|end|>"),
)

_MUSE: Final = MessageFamily(
    {
        HEADER: State(
            {
                "to=self<|message|>": REASONING,
                "to=user<|message|>": CONTENT,
                "to=commentary<|message|>": CONTENT,
                "<atem:function_calls>": CALL,
            },
            kind="header",
        ),
        REASONING: State({"<|eom|>": HEADER}, "reasoning"),
        CONTENT: State({"<|eom|>": HEADER, "<|eot|>": CONTENT}),
        CALL: State({"</atem:function_calls>": CONTENT}, kind="call"),
    },
    HEADER,
    ("to=self<|message|>", "<|eom|>"),
)
_SOLAR_PARTS: Final = {
    "<|think|>": REASONING,
    "<|content|>": CONTENT,
    "<|tool_calls|>": CALL,
    "<|tool_call:begin|>": LOST_CALL,
}
_SOLAR_ENDS: Final = {"<|end|>": HEADER, "<|begin|>assistant": HEADER}
_SOLAR: Final = MessageFamily(
    {
        HEADER: State({**_SOLAR_PARTS, "<|end|>": HEADER}, kind="header"),
        REASONING: State(_SOLAR_ENDS, "reasoning"),
        CONTENT: State({**_SOLAR_PARTS, **_SOLAR_ENDS}),
        CALL: State(_SOLAR_ENDS, kind="call"),
        LOST_CALL: State(_SOLAR_ENDS, kind="call", has_markup=True),
    },
    CONTENT,
    ("<|think|>", "<|end|>"),
)
_FUNCTIONARY: Final = MessageFamily(
    {
        HEADER: State({"all\n": CONTENT, "\n": LOST_CALL}, kind="header"),
        CONTENT: State({">>>": HEADER}),
        LOST_CALL: State({">>>": HEADER}, kind="call", has_markup=True),
    },
    CONTENT,
    None,
)
FAMILIES: Final = {"harmony": HARMONY, "muse_spark": _MUSE, "solar_open": _SOLAR, "functionary_v3_2": _FUNCTIONARY}
"""The families by the names of their formats of tool calls."""
