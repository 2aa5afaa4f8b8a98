"""Share a model's weights between loads, so that another adapter or other options need no second read."""

import copy
from pathlib import Path
from typing import Any

from mlx import nn

Files = list[tuple[str, int, int]]


class SharedWeights:
    """The modules of a model, which never run. The networks that run are copies, and share the weights.

    So nothing has to be undone when an adapter is removed: it was added to a copy. Some models even store compiled
    functions, with their weights, in their modules.

    Args:
        folder: The model folder.
        files: The folder's files when they were read.
        network: The modules.
        config: The config.json, as mlx-lm completes it.
    """

    def __init__(self, folder: Path, files: Files, network: nn.Module, config: dict[str, Any]) -> None:
        self.folder = folder
        self.config = config
        self._files = files
        self._network = network

    def new_network(self) -> nn.Module:
        """Return a network to run or to change. Copies no weights."""
        return _copy_modules(self._network, {})

    def modules(self) -> nn.Module:
        """Return the shared modules. They must not be changed."""
        return self._network

    def matches(self, folder: Path) -> bool:
        """Return whether a folder is the same, with unchanged files."""
        return self.folder == folder and self._files == list_files(folder)


def list_files(folder: Path) -> Files:
    """Return the name, size and modification time of each file. They change if the model is replaced."""
    stats = [(path.name, path.stat()) for path in sorted(folder.iterdir()) if path.is_file()]
    return [(name, stat.st_size, stat.st_mtime_ns) for name, stat in stats]


def _copy_modules(value: Any, copies: dict[int, Any]) -> Any:
    """Return a copy of modules and their containers. A module in two places stays one module."""
    if id(value) in copies:
        return copies[id(value)]
    if isinstance(value, dict):  # a module is one
        copied = copies[id(value)] = copy.copy(value)
        for key, part in value.items():
            copied[key] = _copy_modules(part, copies)
        return copied
    if isinstance(value, list | tuple):
        parts = [_copy_modules(part, copies) for part in value]
        return parts if isinstance(value, list) else tuple(parts)
    return value
