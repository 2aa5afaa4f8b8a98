"""The syntax of gpt-oss: an answer is a sequence of messages, each on a channel or to a tool.

    <|channel|>analysis<|message|>a thought<|end|>
    <|start|>assistant<|channel|>commentary<|message|>what it is about to do<|end|>
    <|start|>assistant<|channel|>commentary to=functions.NAME <|constrain|>json<|message|>{...}<|call|>
    <|start|>assistant to=functions.NAME<|channel|>commentary json<|message|>{...}<|call|>
    <|start|>assistant<|channel|>final<|message|>the answer<|return|>

A header's recipient can stand before its channel or behind it, and what follows it is the call's section: the reader
is given the name, the rest of the header, <|message|> and the body.
"""

from typing import Final

from .states import CALL, CONTENT, HEADER, REASONING, State

MARKERS: Final = frozenset({"<|start|>", "<|channel|>", "<|message|>", "<|end|>"})
"""What the vocabulary of such a model has."""

THINK_START: Final = "<|channel|>analysis<|message|>"
THINK_END: Final = "<|end|>"

_THOUGHT_HEADER: Final = "thought header"
_ENDS: Final = {"<|end|>": HEADER, "<|call|>": HEADER, "<|return|>": HEADER}
_STARTS: Final = {
    "<|start|>assistant": HEADER,
    "<|channel|>analysis": _THOUGHT_HEADER,
    "<|channel|>commentary": HEADER,
    "<|channel|>final": HEADER,
}

STATES: Final = {
    HEADER: State({**_ENDS, **_STARTS, "to=": CALL, "<|message|>": CONTENT}, kind="header"),
    _THOUGHT_HEADER: State({**_ENDS, **_STARTS, "to=": CALL, "<|message|>": REASONING}, "reasoning", "header"),
    CONTENT: State({**_ENDS, **_STARTS}),
    REASONING: State({**_ENDS, **_STARTS}, "reasoning"),
    CALL: State({**_ENDS, "<|start|>assistant": HEADER}, kind="call"),
}
