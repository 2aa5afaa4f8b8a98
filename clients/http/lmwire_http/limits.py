"""The longest lists and maps in the bodies of requests, and the limits of a body as a whole.

Each is far above what clients send. A list that a worker limits, too, has the same limit here, so that it is refused
before it is converted. A list of text takes time for each item, so lists of other things than numbers stay short.
"""

from typing import Annotated, Any, Final, TypeAlias, TypeVar

from msgspec import Meta

from lmwire_protocol.limits import (
    BANNED_STRINGS,
    CONTEXT_FILES,
    DRY_BREAKERS,
    INPUTS,
    LOGIT_BIASES,
    MEMBERS,
    MESSAGES,
    PARTS,
    PROMPT_LOGPROBS,
    PROMPT_TOKENS,
    STOP_STRINGS,
    TOOL_CALLS,
    TOOLS,
)

JSON_WEIGHT: Final = 2 * 1024 * 1024
"""Most work to decode a JSON body; `http.body` has the units. That of a million messages' tokens fits."""
JSON_DEPTH: Final = 128
"""Most levels of a JSON body. A worker reads 100 levels in any case."""
PROMPTS: Final = 1024
"""Prompts of one completion request. Evaluations send some hundreds."""
SHORT_LIST: Final = 64
"""Entries of a list of which one or two are usual, such as `modalities` or the examples of a tool."""
UNKNOWN_FIELDS: Final = 1024
"""Fields of an object that has unknown ones. Each is compared, and may be reported."""
FORM_PARTS: Final = 128
"""Parts of a form. A recording has about 10."""
FORM_HEAD_BYTES: Final = 4 * 1024
"""Head of a form's part, which holds its name and that of its file."""

Item = TypeVar("Item")
Value = TypeVar("Value")

Messages: TypeAlias = Annotated[list[Item], Meta(max_length=MESSAGES)]
"""Messages, or items of a conversation."""
Parts: TypeAlias = Annotated[list[Item], Meta(max_length=PARTS)]
"""Parts of a message, or images and annotations beside its text."""
Calls: TypeAlias = Annotated[list[Item], Meta(max_length=TOOL_CALLS)]
Tools: TypeAlias = Annotated[list[Item], Meta(max_length=TOOLS)]
Inputs: TypeAlias = Annotated[list[Item], Meta(max_length=INPUTS)]
"""Texts to embed."""
TokenList: TypeAlias = Annotated[list[Item], Meta(max_length=PROMPT_TOKENS)]
"""Token ids, or texts in their place."""
Logprobs: TypeAlias = Annotated[list[Item], Meta(max_length=PROMPT_LOGPROBS)]
StopStrings: TypeAlias = Annotated[list[str], Meta(max_length=STOP_STRINGS)]
DryBreakers: TypeAlias = Annotated[list[str], Meta(max_length=DRY_BREAKERS)]
BannedStrings: TypeAlias = Annotated[list[str], Meta(max_length=BANNED_STRINGS)]
ContextFiles: TypeAlias = Annotated[list[Item], Meta(max_length=CONTEXT_FILES)]
ShortList: TypeAlias = Annotated[list[Item], Meta(max_length=SHORT_LIST)]
Biases: TypeAlias = Annotated[dict[str, Value], Meta(max_length=LOGIT_BIASES)]
JsonObject: TypeAlias = Annotated[dict[str, Any], Meta(max_length=MEMBERS)]
"""An object with any members, such as a JSON Schema or a call's arguments. `JSON_WEIGHT` bounds what is in them."""
Metadata: TypeAlias = Annotated[dict[str, str], Meta(max_length=MEMBERS)]
