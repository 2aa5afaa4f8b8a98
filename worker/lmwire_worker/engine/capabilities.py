"""Refuse commands that a model cannot serve, and say which kind of model can."""

from collections.abc import Collection
from typing import Final

from lmwire_protocol import RequestError

_KINDS: Final = {
    "embed": "an embedding model",
    "transcribe": "a model that transcribes",
    "speak": "a model that speaks",
}
"""For each command, the models that serve it; language models serve the others."""


def check_capability(command: str, path: str, capabilities: Collection[str]) -> None:
    """Check that a loaded model can serve a command.

    Args:
        command: The command's name.
        path: The model's folder.
        capabilities: The model's capabilities.

    Raises:
        RequestError: unsupported.
    """
    if command not in capabilities:
        kind = _KINDS.get(command, "a language model")
        problem = f"{path} cannot serve {command}; it can serve {', '.join(capabilities)}. Load {kind} for it"
        raise RequestError("unsupported", problem)
