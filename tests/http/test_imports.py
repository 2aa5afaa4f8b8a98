"""The server uses only the Python client's public names, as any program may. Its command shares more."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import lmwire
import lmwire.mcp
import lmwire.model_download
import lmwire.pdf
import lmwire_http

FOLDER = Path(lmwire_http.__file__).parent


LAYERS = (
    ("settings", "errors", "limits"),
    ("telemetry", "pool"),
    ("http",),
    ("inference",),
    ("openai", "anthropic", "ollama", "llama_cpp", "rerank", "operations", "page", "mcp"),
    ("app",),
    ("server",),
    ("cli",),
)
"""Modules and packages of the server. Each imports only from earlier layers."""


COMMAND = ("lmwire.cli.arguments", "lmwire.cli.option_sources", "lmwire.cli.progress")
"""Modules of the `lmwire` command that only the command line of the server may import."""


def imported(folder: Path = FOLDER) -> Iterator[tuple[str, str | None]]:
    """Yield the module and the name of each import of a folder's files."""
    for path in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.level == 0:
                yield from ((node.module or "", alias.name) for alias in node.names)
            elif isinstance(node, ast.Import):
                yield from ((alias.name, None) for alias in node.names)


@pytest.mark.slow
def test_it_uses_only_public_names_of_the_client() -> None:
    used = [(module, name) for module, name in imported() if module.partition(".")[0] == "lmwire"]
    shared = [(module, name) for module, name in imported(FOLDER / "cli") if module in COMMAND]
    assert used
    for each in shared:
        used.remove(each)
    assert {module for module, _ in used} == {"lmwire", "lmwire.mcp", "lmwire.model_download", "lmwire.pdf"}
    public = {*lmwire.__all__, *lmwire.mcp.__all__, *lmwire.model_download.__all__, *lmwire.pdf.__all__}
    assert {name for _, name in used} <= public


def test_it_never_imports_the_worker() -> None:
    assert not [module for module, _ in imported() if module.partition(".")[0] == "lmwire_worker"]


def test_each_package_imports_only_from_earlier_layers() -> None:
    layer_of = {name: number for number, names in enumerate(LAYERS) for name in names}
    for path in FOLDER.rglob("*.py"):
        package = path.relative_to(FOLDER).with_suffix("").parts
        if package[0] not in {"__init__", "__main__"}:
            for used in relative_imports(path, package[:-1]) - {package[0]}:
                assert layer_of[used] < layer_of[package[0]], f"{path} imports {used}"


def relative_imports(path: Path, package: tuple[str, ...]) -> set[str]:
    """Return the top-level modules and packages of the server that a file imports.

    Args:
        path: The file.
        package: The parts of its package's name below `lmwire_http`.
    """
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.level:
            parts = [*package[: len(package) - node.level + 1], *(node.module or "").split(".")]
            found |= {parts[0]} if parts[0] else {alias.name for alias in node.names}
    return found
