"""Protocol 1 of lmwire: the messages between a host and a worker, and the bytes that carry them.

These Structs are the source of truth; PROTOCOL.md explains them and schema/v1 is generated from them. The package
needs msgspec and nothing else. Each name below is imported when it is first used: `command_line` must cost no more than
argparse.
"""

from importlib import import_module

TYPE_CHECKING = False  # `typing` would take longer to import than this package
if TYPE_CHECKING:
    from typing import Any

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
        encode_prompt_logprobs,
        encode_tokens,
        error_event,
        truncate_text,
    )
    from .errors import CLIENT_CODES, CODES, EXIT_CODES, RequestError
    from .features import DEFAULT_MODEL, DONE_CMD, FEATURES
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
        TokensPart,
        Tool,
    )

__version__ = "0.2.0"

__all__ = [
    "CLIENT_CODES",
    "CODES",
    "COMMANDS",
    "DEFAULT_MODEL",
    "DONE_CMD",
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
    "TokensPart",
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
    "encode_prompt_logprobs",
    "encode_tokens",
    "error_event",
    "escape_separators",
    "events",
    "limits",
    "recover_id",
    "truncate_text",
    "usable_id",
]
_MODULES = {
    "AudioPart": "messages",
    "CLIENT_CODES": "errors",
    "CODES": "errors",
    "COMMANDS": "commands",
    "Cache": "commands",
    "CalledTool": "messages",
    "Cancel": "commands",
    "Chat": "commands",
    "ChoiceFormat": "formats",
    "Command": "commands",
    "ContextFile": "messages",
    "DEFAULT_MODEL": "features",
    "DONE_CMD": "features",
    "EXIT_CODES": "errors",
    "Embed": "commands",
    "FEATURES": "features",
    "Format": "formats",
    "Function": "messages",
    "Generate": "commands",
    "Generation": "commands",
    "Hello": "commands",
    "ImagePart": "messages",
    "Info": "commands",
    "JsonObjectFormat": "formats",
    "JsonSchemaFormat": "formats",
    "LarkFormat": "formats",
    "Line": "framing",
    "LineSplitter": "framing",
    "Load": "commands",
    "Media": "messages",
    "Message": "messages",
    "NamedTool": "messages",
    "Part": "messages",
    "Ping": "commands",
    "Quit": "commands",
    "RegexFormat": "formats",
    "RequestError": "errors",
    "Speak": "commands",
    "Stats": "commands",
    "TextPart": "messages",
    "TokensPart": "messages",
    "Tokenize": "commands",
    "Tool": "messages",
    "Transcribe": "commands",
    "Unload": "commands",
    "decode_command": "decoding",
    "decode_object": "decoding",
    "encode_calls": "encoding",
    "encode_command": "encoding",
    "encode_embedding": "encoding",
    "encode_event": "encoding",
    "encode_prompt_logprobs": "encoding",
    "encode_tokens": "encoding",
    "error_event": "encoding",
    "escape_separators": "framing",
    "events": "events",
    "limits": "limits",
    "recover_id": "decoding",
    "truncate_text": "encoding",
    "usable_id": "decoding",
}
"""The module of each public name; that of a module is its own name."""


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def __getattr__(name: str) -> "Any":
    if (module := _MODULES.get(name)) is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = import_module(f".{module}", __name__)
    value = globals()[name] = found if module == name else getattr(found, name)
    return value
