"""`python -m lmwire_worker.models [--all] [--json] [FOLDER…]`: the models on this machine, or those in the folders.

Nothing is loaded, and no model library is imported: a snapshot's files say whether it can run.
"""

import argparse
import ast
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from huggingface_hub import CachedRepoInfo, CacheNotFound, scan_cache_dir

from lmwire_protocol import RequestError

from .kinds import kind_of
from .text.aliases import ALIASES
from .text.resolve import BUILTIN, BUILTIN_PREFIX


@dataclass(frozen=True)
class Found:
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


def find() -> Iterator[Found]:
    """The models in the hub cache, by name, behind those that are built in."""
    for folder in sorted(BUILTIN.iterdir()) if BUILTIN.is_dir() else ():
        yield _describe(BUILTIN_PREFIX + folder.name, folder, _size_of(folder))
    try:
        repositories = scan_cache_dir().repos
    except CacheNotFound:
        return
    for repository in sorted(repositories, key=lambda repository: repository.repo_id.lower()):
        if repository.repo_type == "model" and repository.revisions:
            yield _describe_cached(repository)


def find_in(folders: Sequence[str]) -> Iterator[Found]:
    """The models in some folders, each called as its folder is."""
    for folder in folders:
        path = Path(folder).expanduser().resolve()
        yield _describe(folder, path, _size_of(path))


def _describe_cached(repository: CachedRepoInfo) -> Found:
    snapshot = max(repository.revisions, key=lambda revision: ("main" in revision.refs, revision.last_modified))
    return _describe(repository.repo_id, snapshot.snapshot_path, snapshot.size_on_disk)


def _size_of(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.glob("*") if file.is_file())


def _describe(id: str, folder: Path, size: int) -> Found:
    config, problem = _check(folder)
    language = config.get("text_config") or config  # where models that also see or hear keep that part
    return Found(
        id=id,
        path=str(folder),
        aliases=[alias for alias, hub_id in ALIASES.items() if hub_id.lower() == id.lower()],
        size_bytes=size,
        model_type=config.get("model_type"),
        bits=(config.get("quantization") or {}).get("bits"),
        context_len=language.get("max_position_embeddings"),
        problem=problem,
    )


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
    if kind == "vision" and config["model_type"] in _architectures("mlx_vlm"):
        return config, None
    if config["model_type"] not in _architectures("mlx_lm"):
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


def _table(models: Sequence[Found]) -> str:
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


def main() -> int:
    """Prints the models as a table or as JSON."""
    parser = argparse.ArgumentParser(prog="python -m lmwire_worker.models")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("folders", nargs="*", metavar="FOLDER")
    options = parser.parse_args()
    found = list(find_in(options.folders) if options.folders else find())
    shown = [model for model in found if options.all or model.problem is None]
    if options.json:
        print(json.dumps([asdict(model) for model in shown], indent=2))
    elif shown:
        print(_table(shown))
    if not options.folders and all(model.id.startswith(BUILTIN_PREFIX) for model in shown):
        print("No model in the hub cache can run. `lmwire chat owner/name` fetches one.", file=sys.stderr)
    if hidden := len(found) - len(shown):
        print(f"{hidden} more cannot run; --all says why.", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
