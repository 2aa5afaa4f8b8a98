"""Every command of protocol 1: one Struct each, holding the fields between the envelope's `id` and `cmd`.

The envelope is separate so that a line always starts with its `id`: a worker can then recover the id of a line that it
cannot read. A JSON null counts as an absent field. Unknown fields are refused.
"""

from typing import Final

from .base import Command, NonNegative, Positive
from .embeddings import Embed
from .generation import Chat, Generate, Generation, Messages, ReasoningEffort, Tokenize, Tools
from .model import Cache, Info, Load, Unload
from .session import Cancel, Hello, Ping, Quit, Stats
from .speech import Speak
from .transcription import Transcribe

__all__ = [
    "COMMANDS",
    "Cache",
    "Cancel",
    "Chat",
    "Command",
    "Embed",
    "Generate",
    "Generation",
    "Hello",
    "Info",
    "Load",
    "Messages",
    "NonNegative",
    "Ping",
    "Positive",
    "Quit",
    "ReasoningEffort",
    "Speak",
    "Stats",
    "Tokenize",
    "Tools",
    "Transcribe",
    "Unload",
]

COMMANDS: Final[dict[str, type[Command]]] = {
    command.name: command
    for command in (
        Hello,
        Load,
        Unload,
        Generate,
        Chat,
        Tokenize,
        Embed,
        Transcribe,
        Speak,
        Cache,
        Info,
        Cancel,
        Ping,
        Stats,
        Quit,
    )
}
"""Every command by the value of `cmd`."""
