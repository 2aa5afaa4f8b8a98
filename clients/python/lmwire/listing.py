"""What is on this machine and can be loaded without a download. That is the worker's knowledge: this asks it."""

import logging
import os
import subprocess
from importlib.util import find_spec
from typing import Final

import msgspec

from .children import child_environment, python_command
from .errors import LmwireError

LISTING_S: Final = 60.0
"""Seconds after which a listing is ended. By itself it ends after half of them, with what it has found."""
_log = logging.getLogger("lmwire")
_running: set["subprocess.Popen[bytes]"] = set()


class LocalModel(msgspec.Struct, frozen=True, kw_only=True):
    """A model on this machine. What its files do not tell is None."""

    id: str
    """As `owner/name` or `builtin:tiny`; a folder as it was given."""
    path: str
    """Its folder, which `load` takes."""
    aliases: list[str]
    """Other names that `load` knows it by."""
    size_bytes: int
    """Of its files."""
    model_type: str | None
    bits: int | None
    """Of a quantised weight."""
    context_len: int | None
    problem: str | None
    """Why it cannot run; None when it can."""


def local_models(*folders: str) -> list[LocalModel]:
    """The models in the hub's cache and those that are built in, or the ones in these folders. Takes about a second.

    A folder that cannot be described has a `problem`, and a warning in the log.

    Raises:
        LmwireError: no worker is installed here, or it has failed.
    """
    command = listing_command("--json", "--all", "--", *folders)
    pipe, nothing = subprocess.PIPE, subprocess.DEVNULL
    environment = child_environment()
    with subprocess.Popen(command, stdin=nothing, stdout=pipe, stderr=pipe, env=environment) as process:
        _running.add(process)
        try:
            output, errors = process.communicate(timeout=LISTING_S)
        except BaseException as error:
            process.kill()
            if isinstance(error, subprocess.TimeoutExpired):
                raise LmwireError(f"the models on this machine cannot be listed in {LISTING_S:.0f} s") from None
            raise
        finally:
            _running.discard(process)
    if process.returncode:
        raise LmwireError(f"the models on this machine cannot be listed: {errors.decode(errors='replace')}")
    for line in errors.decode(errors="replace").splitlines():
        if line.startswith("lmwire: "):
            _log.warning(line.removeprefix("lmwire: "))
    models = msgspec.json.decode(output, type=list[LocalModel])
    if len(models) < len(folders):
        raise LmwireError(f"{folders[len(models)]} cannot be looked at in time")
    return models


def end_listings() -> None:
    """End the listings of this process that still run; their callers get an error."""
    for process in list(_running):
        process.kill()


def listing_command(*options: str) -> list[str]:
    """The program that lists them, which ends with this process.

    Raises:
        LmwireError: no worker is installed here.
    """
    if find_spec("huggingface_hub") is None:
        raise LmwireError("the worker's libraries are not installed: pip install 'lmwire[worker]'")
    return python_command("lmwire_worker.models", "--parent", str(os.getpid()), *options)
