"""Protocol 1 of lmwire: the messages between a host and a worker, and the bytes that carry them.

These Structs are the source of truth; PROTOCOL.md explains them and schema/v1 is generated from them. The package
needs msgspec and nothing else.
"""

from . import events, limits
from .commands import (
    COMMANDS,
    Cancel,
    Chat,
    Command,
    Generate,
    Generation,
    Hello,
    Info,
    Load,
    Message,
    Ping,
    Quit,
    Stats,
    TextPart,
    Unload,
)
from .decoding import decode_command, decode_object, recover_id, usable_id
from .encoding import clip, encode_command, encode_event, encode_tokens, error_event
from .errors import CLIENT_CODES, CODES, EXIT_CODES, RequestError
from .framing import Line, LineSplitter, escape_separators

__version__ = "0.1.0"

__all__ = [
    "CLIENT_CODES",
    "CODES",
    "COMMANDS",
    "EXIT_CODES",
    "Cancel",
    "Chat",
    "Command",
    "Generate",
    "Generation",
    "Hello",
    "Info",
    "Line",
    "LineSplitter",
    "Load",
    "Message",
    "Ping",
    "Quit",
    "RequestError",
    "Stats",
    "TextPart",
    "Unload",
    "__version__",
    "clip",
    "decode_command",
    "decode_object",
    "encode_command",
    "encode_event",
    "encode_tokens",
    "error_event",
    "escape_separators",
    "events",
    "limits",
    "recover_id",
    "usable_id",
]
