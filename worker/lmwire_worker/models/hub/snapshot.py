"""Find models in the cache of the hub, and download those that are not there."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from huggingface_hub import HfApi, snapshot_download
from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError

from lmwire_protocol import RequestError

from ...engine.interface import Report
from ..model_files import read_json
from .cache import find_snapshot_folder, repository_of
from .download import download
from .errors import explain

CODE_PATTERN: Final = "*.py"
MODEL_PATTERNS: Final[tuple[str, ...]] = (
    "*.json",
    "model*.safetensors",
    "tokenizer.model",
    "*.tiktoken",
    "tiktoken.model",
    "*.txt",
    "*.jsonl",
    "*.jinja",
    "weights*.safetensors",
    "speech_tokenizer/*.safetensors",
)
"""The files of a model: mlx-lm's patterns without code, and the weights of many models of speech."""
Validate = Callable[[Path], dict[str, Any]]
"""Returns the config.json of a model folder, or raises RequestError if files are missing or damaged."""
INFO_TIMEOUT_S: Final = 10.0
"""Time for the hub to describe a model, in seconds."""
_COMMIT: Final = re.compile("[0-9a-f]{40}")


def find_snapshot(hub_id: str, report: Report, validate: Validate, *, trust_remote_code: bool) -> Path:
    """Return the folder of a model's snapshot. Makes no network call if the snapshot is on disk and complete.

    Args:
        hub_id: The model's name on the hub.
        report: Receives the progress of a download.
        validate: Checks the files of a snapshot.
        trust_remote_code: Whether to fetch the model's Python files too.

    Raises:
        RequestError: model_not_found; retryable if the network failed.
        LoadCancelled: from `report`. Complete files stay, and are not fetched again.
    """
    patterns: list[str] = [*MODEL_PATTERNS, CODE_PATTERN] if trust_remote_code else list(MODEL_PATTERNS)
    try:
        folder = _find_cached(hub_id, patterns)
        config = validate(folder)  # an interrupted download of another program leaves some files
    except (LocalEntryNotFoundError, HFValidationError, RequestError, OSError):
        return download(hub_id, patterns, report)
    return download(hub_id, patterns, report) if trust_remote_code and _lacks_code(folder, config) else folder


def _find_cached(hub_id: str, patterns: list[str]) -> Path:
    """Return a model's snapshot on disk. A cache that was copied may lack the file that names it.

    Args:
        hub_id: The model's name on the hub.
        patterns: The files of the model. The hub's library checks that those it knows of are there.

    Raises:
        LocalEntryNotFoundError, RequestError, OSError: No snapshot can be used.
    """
    try:
        return Path(snapshot_download(hub_id, allow_patterns=patterns, local_files_only=True))
    except LocalEntryNotFoundError:
        folder = find_snapshot_folder(repository_of(hub_id))
        if folder is None:
            raise
        if not _COMMIT.fullmatch(folder.name):
            return folder
        revision = folder.name
        return Path(snapshot_download(hub_id, revision=revision, allow_patterns=patterns, local_files_only=True))


def _lacks_code(folder: Path, config: dict[str, Any]) -> bool:
    """Return whether a snapshot was fetched without the code that it names."""
    settings = folder / "tokenizer_config.json"
    configs = [config, read_json(settings) if settings.exists() else {}]
    names_code = any(config.get(name) for config in configs for name in ("model_file", "auto_map"))
    return names_code and not any(folder.glob(CODE_PATTERN))


def explain_absence(hub_id: str) -> RequestError | None:
    """Ask the hub for a model without fetching it, and return why it cannot be fetched; None if it can.

    Args:
        hub_id: The model's name on the hub.
    """
    try:
        HfApi().model_info(hub_id, timeout=INFO_TIMEOUT_S)
    except Exception as error:
        return explain(hub_id, error)
    return None
