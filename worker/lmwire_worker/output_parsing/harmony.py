"""The syntax of gpt-oss (harmony): an answer is a sequence of messages, each on a channel or to a tool.

    <|channel|>analysis<|message|>some reasoning<|end|>
    <|start|>assistant<|channel|>commentary<|message|>what it is about to do<|end|>
    <|start|>assistant<|channel|>commentary to=functions.NAME <|constrain|>json<|message|>{...}<|call|>
    <|start|>assistant to=functions.NAME<|channel|>commentary json<|message|>{...}<|call|>
    <|start|>assistant<|channel|>final<|message|>the answer<|return|>

A header's recipient can come before or after its channel. The text after `to=` is the section of a call: the parser
receives the name, the rest of the header, <|message|> and the body.

See https://cookbook.openai.com/articles/openai-harmony.
"""

from typing import Final

from .states import CALL, CONTENT, HEADER, REASONING, State

MARKERS: Final = frozenset({"<|start|>", "<|channel|>", "<|message|>", "<|end|>"})
"""Special tokens in the vocabulary of such a model."""

THINK_START: Final = "<|channel|>analysis<|message|>"
THINK_END: Final = "<|end|>"

_REASONING_HEADER: Final = "reasoning header"
_ENDS: Final = {"<|end|>": HEADER, "<|call|>": HEADER, "<|return|>": HEADER}
_STARTS: Final = {
    "<|start|>assistant": HEADER,
    "<|channel|>analysis": _REASONING_HEADER,
    "<|channel|>commentary": HEADER,
    "<|channel|>final": HEADER,
}

STATES: Final = {
    HEADER: State({**_ENDS, **_STARTS, "to=": CALL, "<|message|>": CONTENT}, kind="header"),
    _REASONING_HEADER: State({**_ENDS, **_STARTS, "to=": CALL, "<|message|>": REASONING}, "reasoning", "header"),
    CONTENT: State({**_ENDS, **_STARTS}),
    REASONING: State({**_ENDS, **_STARTS}, "reasoning"),
    CALL: State({**_ENDS, "<|start|>assistant": HEADER}, kind="call"),
}
