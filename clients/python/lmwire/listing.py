"""What is on this machine and can be loaded without a download. That is the worker's knowledge: this asks it."""

import subprocess
import sys
from importlib.util import find_spec

import msgspec

from .errors import LmwireError


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

    Raises:
        LmwireError: no worker is installed here, or it has failed.
    """
    listing = subprocess.run(listing_command("--json", "--all", "--", *folders), capture_output=True, check=False)
    if listing.returncode:
        raise LmwireError(f"the models on this machine cannot be listed: {listing.stderr.decode(errors='replace')}")
    return msgspec.json.decode(listing.stdout, type=list[LocalModel])


def listing_command(*options: str) -> list[str]:
    """The program that lists them.

    Raises:
        LmwireError: no worker is installed here.
    """
    if find_spec("huggingface_hub") is None:
        raise LmwireError("the worker's libraries are not installed: pip install 'lmwire[worker]'")
    return [sys.executable, "-m", "lmwire_worker.models", *options]
