"""The server is written on what any program may use: the Python client's public names."""

import ast
from collections.abc import Iterator
from pathlib import Path

import lmwire
import lmwire_http

FOLDER = Path(lmwire_http.__file__).parent
COMMAND_LINE = {"main.py", "sockets.py", "server.py"}
"""What is a part of the `lmwire` command, and reads and fails as its other parts do."""


def imported() -> Iterator[tuple[str, str, str | None]]:
    """The file, the module and the name of each import."""
    for path in FOLDER.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.level == 0:
                yield from ((path.name, node.module or "", alias.name) for alias in node.names)
            elif isinstance(node, ast.Import):
                yield from ((path.name, alias.name, None) for alias in node.names)


def test_it_uses_only_public_names_of_the_client() -> None:
    used = [(file, module, name) for file, module, name in imported() if module.partition(".")[0] == "lmwire"]
    assert used
    for file, module, name in used:
        if module == "lmwire":
            assert name in lmwire.__all__
        else:
            assert (file in COMMAND_LINE, module.rpartition(".")[0]) == (True, "lmwire.command")


def test_it_never_imports_the_worker() -> None:
    assert not [module for _, module, _ in imported() if module.partition(".")[0] == "lmwire_worker"]
