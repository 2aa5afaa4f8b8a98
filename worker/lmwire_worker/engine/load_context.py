"""The context of one load, for the loaders of all kinds of models."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from msgspec import Struct

from lmwire_protocol import Load

from ..media import MediaPolicy
from .interface import Report


class LoadContext(Struct, frozen=True):
    """One `load` command, with what is known of the model before its library is imported."""

    request: Load
    """The command."""
    folder: Path
    """The model folder, whose files are checked."""
    config: dict[str, Any]
    """The content of the folder's config.json."""
    report: Report
    """Receives the progress of the load."""
    release_current_model: Callable[[], None]
    """Closes the model that is loaded at present."""
    memory_limit: int | None
    """Maximum memory of a model, its caches and its requests, in bytes; None for the device's default."""
    media_policy: MediaPolicy
    """The images and sounds that requests may refer to."""
    template_dir: Path | None = None
    """The operator's folder of chat templates; None without one."""
