"""Protocol 1 of lmwire: the messages between a host and a worker, and the bytes that carry them.

These Structs are the source of truth; PROTOCOL.md explains them and schema/v1 is generated from them. The package
needs msgspec and nothing else.
"""

from . import events, limits
from .commands import (
    COMMANDS,
    Cache,
    Cancel,
    Chat,
    Command,
    Embed,
    Generate,
    Generation,
    Hello,
    Info,
    Load,
    Ping,
    Quit,
    Speak,
    Stats,
    Tokenize,
    Transcribe,
    Unload,
)
from .decoding import decode_command, decode_object, recover_id, usable_id
from .encoding import (
    encode_calls,
    encode_command,
    encode_embedding,
    encode_event,
    encode_tokens,
    error_event,
    truncate_text,
)
from .errors import CLIENT_CODES, CODES, EXIT_CODES, RequestError
from .features import DEFAULT_MODEL, FEATURES
from .formats import (
    ChoiceFormat,
    Format,
    JsonObjectFormat,
    JsonSchemaFormat,
    LarkFormat,
    RegexFormat,
)
from .framing import Line, LineSplitter, escape_separators
from .messages import (
    AudioPart,
    CalledTool,
    ContextFile,
    Function,
    ImagePart,
    Media,
    Message,
    NamedTool,
    Part,
    TextPart,
    Tool,
)

__version__ = "0.1.0"

__all__ = [
    "CLIENT_CODES",
    "CODES",
    "COMMANDS",
    "DEFAULT_MODEL",
    "EXIT_CODES",
    "FEATURES",
    "AudioPart",
    "Cache",
    "CalledTool",
    "Cancel",
    "Chat",
    "ChoiceFormat",
    "Command",
    "ContextFile",
    "Embed",
    "Format",
    "Function",
    "Generate",
    "Generation",
    "Hello",
    "ImagePart",
    "Info",
    "JsonObjectFormat",
    "JsonSchemaFormat",
    "LarkFormat",
    "Line",
    "LineSplitter",
    "Load",
    "Media",
    "Message",
    "NamedTool",
    "Part",
    "Ping",
    "Quit",
    "RegexFormat",
    "RequestError",
    "Speak",
    "Stats",
    "TextPart",
    "Tokenize",
    "Tool",
    "Transcribe",
    "Unload",
    "__version__",
    "decode_command",
    "decode_object",
    "encode_calls",
    "encode_command",
    "encode_embedding",
    "encode_event",
    "encode_tokens",
    "error_event",
    "escape_separators",
    "events",
    "limits",
    "recover_id",
    "truncate_text",
    "usable_id",
]
