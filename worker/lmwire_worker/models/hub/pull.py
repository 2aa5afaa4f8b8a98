"""Download a model of the hub without loading it."""

from pathlib import Path

from lmwire_protocol import RequestError

from ...engine.interface import Report
from ..resolve import HUB_ID, hub_id_of
from .download import download
from .plan import Announce
from .snapshot import MODEL_PATTERNS


def pull(name: str, report: Report, announce: Announce, revision: str | None = None) -> Path:
    """Download a model's missing files, or those that have changed on the hub, and return its snapshot.

    Args:
        name: A hub id or an alias.
        report: Receives the progress. What it raises cancels the download.
        announce: Receives the plan before the first file.
        revision: A branch, tag or commit; None for the main branch.

    Raises:
        RequestError: model_not_found, bad_model.
    """
    return download(require_hub_id(name), MODEL_PATTERNS, report, revision=revision, announce=announce)


def require_hub_id(name: str) -> str:
    """Return the hub id that a name stands for.

    Raises:
        RequestError: model_not_found, if it is a path, a built-in model or an unknown name.
    """
    hub_id = hub_id_of(name)
    if HUB_ID.fullmatch(hub_id):
        return hub_id
    raise RequestError("model_not_found", f"{name[:200]!r} is not a model of the hub; give owner/name, or an alias")
