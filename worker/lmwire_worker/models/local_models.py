"""List the models on this machine: `python -P -m lmwire_worker.list_models [--all] [--json] [FOLDER…]`.

The program loads nothing and imports no model library: a model's files show whether it can run. A damaged folder does
not hide others. The program exits in time, and when its parent exits.
"""

import argparse
import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from lmwire_protocol import RequestError
from lmwire_protocol.printable import one_line

from ..process.exits import exit_now
from ..process.process_tree import is_ancestor
from .config_check import understanding_part
from .hub.cache import cached_repositories, find_snapshot_folder
from .load_estimate import estimate_load_bytes
from .model_files import walk_files
from .package_models import fetched_package_models
from .resolve import ALIASES, BUILTIN, BUILTIN_PREFIX

LISTING_TIMEOUT_S: Final = 30.0
"""Maximum duration of a listing. A file system may block for ever."""
PARENT_POLL_S: Final = 0.2
"""Interval at which a listing checks that its parent is alive, in seconds."""
EXIT_ORPHAN: Final = 74


CheckSupport = Callable[..., tuple[dict[str, Any], str | None, str | None]]
"""Returns a model's config.json, its kind, and why the model cannot run; None if it can."""


@dataclass(frozen=True)
class LocalModel:
    """A model on this machine. A field is None if the model's files do not contain it."""

    id: str
    path: str
    """The model folder."""
    aliases: list[str]
    """Other names that `load` accepts for it."""
    size_bytes: int
    model_type: str | None
    bits: int | None
    """Bits of a quantised weight."""
    context_len: int | None
    problem: str | None
    """Why the model cannot run; None if it can."""
    load_bytes: int = 0
    """Estimated memory of a load, in bytes: the weights and a short answer. 0 if unknown."""
    kind: str | None = None
    """`text`, `vision`, `speech`, `synthesis` or `embeddings`."""


def find_models(check: CheckSupport) -> Iterator[LocalModel]:
    """Yield the built-in models, those that packages brought, and then those in the hub cache, by name."""
    for folder in sorted(BUILTIN.iterdir()) if BUILTIN.is_dir() else ():
        yield _find_model(BUILTIN_PREFIX + folder.name, folder, check)
    for name, folder in fetched_package_models():
        yield _find_model(name, folder, check)
    for id, repository in sorted(cached_repositories().items(), key=lambda item: item[0].lower()):
        try:
            snapshot = find_snapshot_folder(repository)
        except (RequestError, OSError) as error:
            yield broken_model(id, repository, error)
            continue
        if snapshot:
            yield _find_model(id, snapshot, check)


def find_in_folders(folders: Sequence[str], check: CheckSupport) -> Iterator[LocalModel]:
    """Yield the models in folders. A model's id is the folder as it was given.

    Args:
        folders: The model folders.
        check: Finds out whether a model can run.
    """
    for folder in folders:
        yield _find_model(folder, Path(folder).expanduser().resolve(), check)


def _find_model(id: str, folder: Path, check: CheckSupport) -> LocalModel:
    """Describe the model in a folder. An error here never hides other models."""
    try:
        return _describe(id, folder, check)
    except Exception as error:
        return broken_model(id, folder, error)


def _size_of(folder: Path) -> int:
    try:
        return sum(status.st_size for _, status in walk_files(folder))
    except RequestError:  # `check` reports it
        return 0


def broken_model(id: str, folder: Path, error: Exception) -> LocalModel:
    """Return the entry of a folder that cannot be described, and print the reason on stderr."""
    problem = f"it cannot be described: {' '.join(str(error).split())[:300]}"
    print(f"lmwire: {one_line(f'{id} is left out: {problem}')}", file=sys.stderr)
    return LocalModel(id, str(folder), [], 0, None, None, None, problem)


def _describe(id: str, folder: Path, check: CheckSupport) -> LocalModel:
    config, kind, problem = check(folder)
    # Models that also see or hear have an object for the language part.
    language = _object(understanding_part(config), "text_config") or config
    return LocalModel(
        id=id,
        path=str(folder),
        aliases=[alias for alias, hub_id in ALIASES.items() if hub_id.lower() == id.lower()],
        size_bytes=_size_of(folder),
        model_type=name if isinstance(name := config.get("model_type"), str) else None,
        bits=_number(_object(config, "quantization"), "bits"),
        context_len=_number(language, "max_position_embeddings"),
        problem=problem,
        load_bytes=estimate_load_bytes(folder, config) if kind else 0,
        kind=kind,
    )


def _object(config: dict[str, Any], name: str) -> dict[str, Any]:
    value = config.get(name)
    return value if isinstance(value, dict) else {}


def _number(config: dict[str, Any], name: str) -> int | None:
    value = config.get(name)
    return value if type(value) is int and 0 <= value < 2**53 else None


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
    shown = [tuple(map(one_line, row)) for row in rows]
    widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in shown)
    return "\n".join(lines)


def _size(size: int) -> str:
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{size / 1e6:.1f} MB"


def main(check: CheckSupport, tool_formats: Mapping[str, str]) -> None:
    """Print the models as a table or as JSON, and exit.

    Args:
        check: Tells whether a model can run.
        tool_formats: The formats of tool calls by name, with the models that write them, for `--tool-formats`.
    """
    parser = argparse.ArgumentParser(prog="python -P -m lmwire_worker.list_models")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--tool-formats", action="store_true")
    parser.add_argument("--parent", type=int, metavar="PID", help="end when this process, which started it, ends")
    parser.add_argument("--trust-remote-code", action="store_true")
    parser.add_argument("folders", nargs="*", metavar="FOLDER")
    options = parser.parse_args()
    if options.tool_formats:
        _show_tool_formats(tool_formats, options)
        return
    found: list[LocalModel] = []
    check = partial(check, trust_remote_code=options.trust_remote_code)
    search = find_in_folders(options.folders, check) if options.folders else find_models(check)
    if not _collect(search, found, options.parent):
        print(f"lmwire: the listing is not complete after {LISTING_TIMEOUT_S:.0f} s", file=sys.stderr)
    _show(list(found), options)
    sys.stdout.flush()
    sys.stderr.flush()
    exit_now(0)  # the search may be stuck in a file system


def _show_tool_formats(formats: Mapping[str, str], options: argparse.Namespace) -> None:
    if options.json:
        print(json.dumps([{"name": name, "models": models} for name, models in formats.items()], indent=2))
    else:
        width = max(map(len, formats))
        print("\n".join(f"{name:{width}}  {models}" for name, models in formats.items()))


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
            exit_now(EXIT_ORPHAN)
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
