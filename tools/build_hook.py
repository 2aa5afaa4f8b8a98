"""Add manual pages and shell completions to the wheel when hatchling builds it."""

import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_PACKAGES = ("protocol", "worker", "clients/python", "clients/http", "tools")
_COMPLETIONS = {
    "bash": "share/bash-completion/completions/lmwire",
    "zsh": "share/zsh/site-functions/_lmwire",
    "fish": "share/fish/vendor_completions.d/lmwire.fish",
}


class ManPagesAndCompletions(BuildHookInterface[Any]):
    """Writes files for `share`, and names them to the builder."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write the files before the wheel is built. An editable installation has no use for them.

        Args:
            version: `standard` or `editable`.
            build_data: What the builder adds to the wheel.
        """
        if version == "editable":
            return
        sys.path[:0] = [str(Path(self.root, package)) for package in _PACKAGES]
        from lmwire.cli.completion import completion_script
        from man_pages import write_man_pages

        self._folder = tempfile.TemporaryDirectory(prefix="lmwire-build-")
        folder = Path(self._folder.name)
        shared = build_data["shared_data"]
        for page in write_man_pages(folder):
            shared[str(page)] = f"share/man/man1/{page.name}"
        for shell, path in _COMPLETIONS.items():
            (folder / shell).write_text(completion_script(shell))
            shared[str(folder / shell)] = path

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove the files after the wheel has been built.

        Args:
            version: `standard` or `editable`.
            build_data: What the builder added to the wheel.
            artifact_path: The wheel.
        """
        if folder := getattr(self, "_folder", None):
            folder.cleanup()
