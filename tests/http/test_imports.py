"""The server uses only the Python client's public names, as any program may."""

import ast
from collections.abc import Iterator
from pathlib import Path

import lmwire
import lmwire_http

FOLDER = Path(lmwire_http.__file__).parent


def imported() -> Iterator[tuple[str, str | None]]:
    """Yield the module and the name of each import."""
    for path in FOLDER.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.level == 0:
                yield from ((node.module or "", alias.name) for alias in node.names)
            elif isinstance(node, ast.Import):
                yield from ((alias.name, None) for alias in node.names)


def test_it_uses_only_public_names_of_the_client() -> None:
    used = [(module, name) for module, name in imported() if module.partition(".")[0] == "lmwire"]
    assert used
    assert {module for module, _ in used} == {"lmwire"}
    assert {name for _, name in used} <= set(lmwire.__all__)


def test_it_never_imports_the_worker() -> None:
    assert not [module for module, _ in imported() if module.partition(".")[0] == "lmwire_worker"]
