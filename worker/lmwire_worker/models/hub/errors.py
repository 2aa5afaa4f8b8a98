"""Explain to a person why the hub does not give a model, and what to do about it."""

import errno
from typing import Final

from huggingface_hub import constants
from huggingface_hub.errors import (
    GatedRepoError,
    HfHubHTTPError,
    HFValidationError,
    OfflineModeIsEnabled,
    RevisionNotFoundError,
)

from lmwire_protocol import RequestError

DISK_ERRORS: Final = (errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EPERM, errno.EROFS)


def explain(hub_id: str, error: BaseException) -> RequestError:
    """Return the model_not_found error for a failure of the hub's library. A refusal of lmwire's own stays as it is.

    Args:
        hub_id: The model's name on the hub.
        error: The failure.
    """
    if isinstance(error, RequestError):
        return error
    if isinstance(error, HFValidationError):
        return _not_found(f"{hub_id} is not a hub id, which is owner/name: {error}")
    if isinstance(error, OfflineModeIsEnabled) or isinstance(error.__cause__, OfflineModeIsEnabled):
        return _not_found(
            f"{hub_id} is not on disk, and HF_HUB_OFFLINE forbids fetching it; unset it, or give a folder"
        )
    answer = error if isinstance(error, HfHubHTTPError) else error.__cause__
    if isinstance(answer, HfHubHTTPError):
        return _explain_answer(hub_id, answer)
    if isinstance(error, OSError) and error.errno in DISK_ERRORS:
        return _not_found(f"{hub_id} cannot be stored: {error}")
    problem = f"{hub_id} is not on disk, and the network failed: {_first_line(error)}; try again, or give a folder"
    return _not_found(problem, retryable=True)


def _explain_answer(hub_id: str, answer: HfHubHTTPError) -> RequestError:
    status = answer.response.status_code
    if status not in (401, 403, 404):
        return _not_found(f"{hub_id} is not on disk, and the hub failed (HTTP {status})", retryable=True)
    reason = _first_line(answer.server_message or answer)
    problem = f"{hub_id} is not on disk, and the hub does not give it (HTTP {status}: {reason})"
    return _not_found(f"{problem}; {_remedy(hub_id, status, answer)}")


def _remedy(hub_id: str, status: int, answer: HfHubHTTPError) -> str:
    if isinstance(answer, RevisionNotFoundError):
        return f"{constants.ENDPOINT}/{hub_id} lists its branches and tags"
    if isinstance(answer, GatedRepoError) or status == 403:
        terms = f"accept its terms at {constants.ENDPOINT}/{hub_id}"
        return f"{terms}, and set HF_TOKEN to a token of that account, or run `hf auth login`"
    return "check the name, and HF_TOKEN for a private or gated model"


def _not_found(problem: str, *, retryable: bool = False) -> RequestError:
    return RequestError("model_not_found", problem, retryable=retryable)


def _first_line(error: object) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
