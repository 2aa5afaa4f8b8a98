"""The models on this machine: `python -P -m lmwire_worker.models [--all] [--json] [FOLDER…]` lists them.

Nothing is loaded, and no model library is imported: a snapshot's files say whether it can run. A folder that cannot be
looked at hides no other one, and the program ends in time and with the one that started it.
"""

import argparse
import ast
import json
import os
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from huggingface_hub import constants

from lmwire_protocol import RequestError

from ..engine.model_kind import kind_of
from ..multimodal.detect import is_served, unserved_problem
from ..process.exits import leave
from ..process.process_tree import is_ancestor
from .aliases import ALIASES
from .model_files import read_file, walk_files
from .resolve import BUILTIN, BUILTIN_PREFIX

LISTING_TIMEOUT_S: Final = 30.0
"""Seconds after which a listing shows what it has found. A file system may keep it waiting for ever."""
PARENT_POLL_S: Final = 0.2
"""How often a listing looks whether the one that started it is still there."""
MAX_REF_BYTES: Final = 1_000
"""Maximum size of the file that names a snapshot."""
EXIT_ORPHAN: Final = 74


@dataclass(frozen=True)
class LocalModel:
    """A model on this machine. What its files do not tell is None."""

    id: str
    path: str
    """Its folder."""
    aliases: list[str]
    """Other names that `load` knows it by."""
    size_bytes: int
    model_type: str | None
    bits: int | None
    """Of a quantised weight."""
    context_len: int | None
    problem: str | None
    """Why it cannot run; None when it can."""


def find_models() -> Iterator[LocalModel]:
    """The models in the hub cache, by name, behind those that are built in."""
    for folder in sorted(BUILTIN.iterdir()) if BUILTIN.is_dir() else ():
        yield _found(BUILTIN_PREFIX + folder.name, folder)
    repositories = Path(constants.HF_HUB_CACHE).glob("models--*")
    for repository in sorted(repositories, key=lambda repository: repository.name.lower()):
        id = repository.name.removeprefix("models--").replace("--", "/")
        try:
            snapshot = _snapshot(repository)
        except (RequestError, OSError) as error:
            yield _broken(id, repository, error)
            continue
        if snapshot:
            yield _found(id, snapshot)


def find_in_folders(folders: Sequence[str]) -> Iterator[LocalModel]:
    """The models in some folders, each called as its folder is."""
    for folder in folders:
        yield _found(folder, Path(folder).expanduser().resolve())


def _snapshot(repository: Path) -> Path | None:
    """Return a repository's snapshot: the one that `main` names, or else the latest; None if it has none."""
    main, snapshots = repository / "refs" / "main", repository / "snapshots"
    if main.exists():
        named = snapshots / os.path.basename(read_file(main, MAX_REF_BYTES).decode(errors="replace").strip())
        if named != snapshots / "" and named.is_dir():
            return named
    folders = [folder for folder in snapshots.iterdir() if folder.is_dir()] if snapshots.is_dir() else []
    return max(folders, key=lambda folder: folder.stat().st_mtime, default=None)


def _found(id: str, folder: Path) -> LocalModel:
    """Describe the model in a folder. Whatever the folder holds, the others are listed."""
    try:
        return _describe(id, folder, _size_of(folder))
    except Exception as error:
        return _broken(id, folder, error)


def _size_of(folder: Path) -> int:
    try:
        return sum(status.st_size for _, status in walk_files(folder))
    except RequestError:  # which `_check` reports
        return 0


def _broken(id: str, folder: Path, error: Exception) -> LocalModel:
    """Return what is listed of a folder that cannot be described, and say so on stderr."""
    problem = f"it cannot be described: {' '.join(str(error).split())[:300]}"
    print(f"lmwire: {id} is left out: {problem}", file=sys.stderr)
    return LocalModel(id, str(folder), [], 0, None, None, None, problem)


def _describe(id: str, folder: Path, size: int) -> LocalModel:
    config, problem = _check(folder)
    language = _object(config, "text_config") or config  # where models that also see or hear keep that part
    return LocalModel(
        id=id,
        path=str(folder),
        aliases=[alias for alias, hub_id in ALIASES.items() if hub_id.lower() == id.lower()],
        size_bytes=size,
        model_type=kind if isinstance(kind := config.get("model_type"), str) else None,
        bits=_number(_object(config, "quantization"), "bits"),
        context_len=_number(language, "max_position_embeddings"),
        problem=problem,
    )


def _object(config: dict[str, Any], name: str) -> dict[str, Any]:
    value = config.get(name)
    return value if isinstance(value, dict) else {}


def _number(config: dict[str, Any], name: str) -> int | None:
    value = config.get(name)
    return value if type(value) is int and 0 <= value < 2**53 else None


def _check(folder: Path) -> tuple[dict[str, Any], str | None]:
    """A model's config.json, empty when the model is not whole, and why it cannot run."""
    try:
        kind, config = kind_of(folder, trust_remote_code=False)
    except RequestError as error:
        return {}, error.message.removeprefix(f"{folder} ").removeprefix(f"{folder}/")
    if kind == "speech":
        return config, _lack("mlx_audio")
    if kind == "embeddings":
        return config, _lack("mlx_vlm")
    if kind == "vision" and is_served(config) and config["model_type"] in _architectures("mlx_vlm"):
        return config, None
    if config["model_type"] not in _architectures("mlx_lm"):
        if kind == "vision" and not is_served(config):
            return config, unserved_problem(config)
        return config, f"mlx-lm has no architecture `{config['model_type']}`"
    return config, None


def _lack(library: str) -> str | None:
    return None if find_spec(library) else f"{library.replace('_', '-')} is not installed"


@cache
def _architectures(name: str) -> frozenset[str]:
    """What a library can run, read from its files: importing it takes a second."""
    spec = find_spec(name)
    if spec is None or spec.origin is None:
        return frozenset()
    library = Path(spec.origin).parent
    modules = {path.stem for path in (library / "models").iterdir()}
    for node in ast.parse((library / "utils.py").read_text()).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "MODEL_REMAPPING":
            modules |= set(ast.literal_eval(node.value))
    return frozenset(modules)


def _table(models: Sequence[LocalModel]) -> str:
    rows = [("MODEL", "TYPE", "WEIGHTS", "CONTEXT", "SIZE", "")]
    rows += [
        (
            model.id,
            model.model_type or "",
            f"{model.bits} bits" if model.bits else "",
            f"{model.context_len:,}" if model.context_len else "",
            _size(model.size_bytes),
            f"cannot run: {model.problem}" if model.problem else "",
        )
        for model in models
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows)
    return "\n".join(lines)


def _size(size: int) -> str:
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{size / 1e6:.1f} MB"


def main() -> None:
    """Prints the models as a table or as JSON; does not return."""
    parser = argparse.ArgumentParser(prog="python -P -m lmwire_worker.models")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--parent", type=int, metavar="PID", help="end when this process, which started it, ends")
    parser.add_argument("folders", nargs="*", metavar="FOLDER")
    options = parser.parse_args()
    found: list[LocalModel] = []
    search = find_in_folders(options.folders) if options.folders else find_models()
    if not _collect(search, found, options.parent):
        print(f"lmwire: the listing is not complete after {LISTING_TIMEOUT_S:.0f} s", file=sys.stderr)
    _show(list(found), options)
    sys.stdout.flush()
    sys.stderr.flush()
    leave(0)  # the search may be stuck in a file system


def _collect(search: Iterator[LocalModel], found: list[LocalModel], parent: int | None) -> bool:
    """Gather what a search finds, and return whether it has ended; leave when the parent is gone.

    Args:
        search: Yields models.
        found: Takes them, as they come.
        parent: The process to end with; None for the one above, while it is the same.
    """
    thread = threading.Thread(target=lambda: found.extend(search), daemon=True)
    above, end = os.getppid(), time.monotonic() + LISTING_TIMEOUT_S
    thread.start()
    while thread.is_alive() and time.monotonic() < end:
        if os.getppid() != above or (parent is not None and parent != above and not is_ancestor(parent)):
            leave(EXIT_ORPHAN)
        thread.join(PARENT_POLL_S)
    return not thread.is_alive()


def _show(found: Sequence[LocalModel], options: argparse.Namespace) -> None:
    shown = [model for model in found if options.all or model.problem is None]
    if options.json:
        print(json.dumps([asdict(model) for model in shown], indent=2))
    elif shown:
        print(_table(shown))
    if not options.folders and all(model.id.startswith(BUILTIN_PREFIX) for model in shown):
        print("No model in the hub cache can run. `lmwire chat owner/name` fetches one.", file=sys.stderr)
    if hidden := len(found) - len(shown):
        print(f"{hidden} more cannot run; --all says why.", file=sys.stderr)
