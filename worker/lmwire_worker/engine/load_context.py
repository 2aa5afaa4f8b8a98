"""The context of one load, for the loaders of all kinds of models, and the operator's options of the disk cache."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from lmwire_protocol import Load, RequestError

from ..media import MediaPolicy
from .interface import Report

DEFAULT_DISK_BYTES: Final = 16 * 2**30


class DiskCacheOptions(Struct, frozen=True):
    """The options for all models together.

    Args:
        directory: The directory of the files.
        budget_bytes: Maximum size of all files.
        log: Receives a line for each file that is ignored or cannot be written.
    """

    directory: Path
    budget_bytes: int
    log: Callable[[str], None]


_SETTINGS_OF_TEXT: Final = (
    *("adapter_path", "draft_path", "chat_template_name", "tool_format", "kv_bits", "dtype", "reasoning_start"),
)
"""Fields of a load that only models which write text use."""


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


def refuse_settings(request: Load, whose: str, *others: str) -> None:
    """Refuse the settings that only a model which writes text uses.

    Args:
        request: The load.
        whose: The kind of model, for the error.
        others: Further fields that it does not use.

    Raises:
        RequestError: unsupported. It names the field.
    """
    for field in (*_SETTINGS_OF_TEXT, *others):
        if getattr(request, field) is not None:
            raise RequestError("unsupported", f"{field}: {whose} does not use it; leave it out", field=field)
