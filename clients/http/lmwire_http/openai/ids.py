"""Ids of OpenAI's objects, and what tells one response from another."""

import hashlib
import secrets
from time import time
from typing import NamedTuple

from lmwire_protocol import __version__

from ..settings import Settings


class ResponseIdentity(NamedTuple):
    """The fields with which a completion and each of its chunks begin."""

    id: str
    created: int
    """Time of the request, in seconds since 1970."""
    model: str
    """The model's name in the request."""
    system_fingerprint: str


def new_id(kind: str) -> str:
    """Return a new id, such as `chatcmpl-…` for the kind `chatcmpl`."""
    return f"{kind}-{secrets.token_hex(16)}"


def new_identity(kind: str, model: str, settings: Settings) -> ResponseIdentity:
    """Return the identity of a new response.

    Args:
        kind: The kind of its id.
        model: The model's name in the request.
        settings: The server's settings.
    """
    return ResponseIdentity(new_id(kind), int(time()), model, system_fingerprint(model, settings))


def system_fingerprint(model: str, settings: Settings) -> str:
    """Return a text that changes when the same request with the same seed may have another answer.

    It depends on the version, on the model, and on the options that change answers.

    Args:
        model: The model's name in the request.
        settings: The server's settings.
    """
    options = (
        sorted(settings.load_options.items()),
        settings.worker_command,
        settings.worker_args,
        settings.generation_config,
        settings.default_max_tokens,
        settings.strict_tools,
        settings.reasoning,
        settings.force_reasoning,
    )
    return "fp_" + hashlib.sha256(repr((__version__, model, options)).encode()).hexdigest()[:10]
