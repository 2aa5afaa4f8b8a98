"""A model as its folder has it, which lanes borrow: another adapter or other settings need no second reading."""

import copy
from pathlib import Path
from typing import Any

from mlx import nn

Files = list[tuple[str, int, int]]


class SharedWeights:
    """Modules that hold weights and never run. Those that run are copies, which share the weights.

    So nothing has to be undone when an adapter goes: it was put into a copy, and some models keep what they compiled,
    weights included, in their modules. A base lives as long as one of its networks.

    Args:
        folder: Where it comes from.
        files: The folder's files when it was built.
        network: What mlx-lm made of them.
        config: As mlx-lm completed it.
    """

    def __init__(self, folder: Path, files: Files, network: nn.Module, config: dict[str, Any]) -> None:
        self.folder = folder
        self.config = config
        self._files = files
        self._network = network

    def new_network(self) -> nn.Module:
        """A network to run or to change. Copies no weights."""
        return _copy_modules(self._network, {})

    def modules(self) -> nn.Module:
        """The modules that every network starts from; not to be changed."""
        return self._network

    def matches(self, folder: Path) -> bool:
        """Whether the folder still has what this was read from."""
        return self.folder == folder and self._files == list_files(folder)


def list_files(folder: Path) -> Files:
    """Each file's name, size and time of change, which change whenever another model is put in its place."""
    stats = [(path.name, path.stat()) for path in sorted(folder.iterdir()) if path.is_file()]
    return [(name, stat.st_size, stat.st_mtime_ns) for name, stat in stats]


def _copy_modules(value: Any, copies: dict[int, Any]) -> Any:
    """A copy of modules and of the containers between them; a module that has two places keeps both."""
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
