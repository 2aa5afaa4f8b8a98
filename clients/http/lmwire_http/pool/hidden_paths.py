"""Removal of the server's paths from messages for clients, who must not learn how its disk is laid out."""

import os
import re
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import msgspec

from lmwire import RequestFailed
from lmwire_protocol import events

if TYPE_CHECKING:
    from .model_resolver import ModelSpec

_PATH: Final = re.compile(
    r"""(?P<quote>['"`])~?/(?:(?!(?P=quote)).)*(?P=quote)"""  # in quotes, where it may have spaces
    r"""|\bfile://[^\s'"`,;()\[\]]+"""
    r"""|(?<![\w./~-])(?!(?<=:)//)~?/[^\s'"`:,;()\[\]]*[^\s'"`:,;()\[\].]"""  # not the host of a URL
)
_HIDDEN: Final = "[path]"
_FAULTS_OF_SERVER: Final = ("engine_error", "internal", "bad_model")
"""Codes of errors whose messages may quote any exception."""
_FOLDER_OPTIONS: Final = {"adapter_path": "the adapter", "draft_path": "the draft model"}


def hide_paths(message: str) -> str:
    """Return a message without anything that looks like a path."""
    return _PATH.sub(_HIDDEN, message)


class PathRedactor:
    """Filter of texts that replaces the folders of one model by names, and other paths where any may occur.

    Args:
        spec: The model.
        load_options: Options of its load, which may name more folders.
    """

    def __init__(self, spec: "ModelSpec", load_options: dict[str, Any]) -> None:
        self._id = spec.id
        self._names = {spec.path: spec.id, os.path.expanduser("~"): "~"}
        self._names |= {str(path): label for name, label in _FOLDER_OPTIONS.items() if (path := load_options.get(name))}
        self._names |= {os.path.realpath(path): name for path, name in self._names.items()}

    def redact(self, message: str, *, any_path: bool) -> str:
        """Return a message without paths.

        Args:
            message: The message.
            any_path: Whether to hide everything that looks like a path, or only the model's own folders.
        """
        for path, name in sorted(self._names.items(), key=lambda item: len(item[0]), reverse=True):
            if os.path.isabs(path) and len(path) > 1:
                message = re.sub(rf"{re.escape(path)}(?![\w-])", lambda _, name=name: name, message)
        return hide_paths(message) if any_path else message

    @contextmanager
    def redacting(self, loaded: events.ModelDone | None) -> Generator[None]:
        """Remove paths from the worker's errors in a block.

        Args:
            loaded: The worker's description of the model; None while the model is being loaded.
        """
        if loaded:
            self._names.setdefault(loaded.path, self._id)
        try:
            yield
        except RequestFailed as error:
            any_path = loaded is None or error.code in _FAULTS_OF_SERVER
            message = self.redact(error.event.error, any_path=any_path)
            raise type(error)(msgspec.structs.replace(error.event, error=message)) from error
