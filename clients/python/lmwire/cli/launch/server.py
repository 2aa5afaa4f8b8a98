"""The HTTP server that an agent uses: one that runs already, or one that is started for the agent."""

import contextlib
import secrets
import sys
from collections.abc import Generator
from dataclasses import dataclass
from http.client import HTTPException
from typing import Any, Final
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import Request

import msgspec

from ..arguments.subcommands import DEFAULT_URL
from ..errors import CliError
from ..local_servers import listener_of, open_url
from .server_start import ANSWER_TIMEOUT_S, MOST_BYTES, start_server

_ANY_KEY: Final = "lmwire"
"""API key for a server that needs none. Agents insist on one."""
_PROBE_TIMEOUT_S: Final = 10
"""Longest time for whatever runs at the default address to answer, in seconds. It may be no server of lmwire."""
_UNAUTHORIZED: Final = 401
_SHOWN_MODELS: Final = 8
_KEY_BYTES: Final = 32
LONGEST_NAME: Final = 1_000
"""Characters of the longest name of a model. Agents show it, and get it in their environment."""


class _ListedModel(msgspec.Struct):
    """A model in the answer of /v1/models."""

    id: str
    context_length: int | None = None
    loaded: bool = False


class _ModelList(msgspec.Struct):
    data: list[_ListedModel]
    models: msgspec.Raw = msgspec.Raw(b"[]")


class _Ready(msgspec.Struct):
    """The answer of /ready."""

    ready: bool


@dataclass(frozen=True, slots=True)
class Model:
    """The model that the agent uses."""

    id: str
    context_len: int | None
    """Context length in tokens; None if unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """A server that runs."""

    url: str
    """Its address, without a path."""
    api_key: str
    needs_key: bool
    """True if the key is a secret."""
    model: Model
    codex_models: bytes
    """The list of the models in the JSON form that Codex reads."""


@contextlib.contextmanager
def find_server(url: str | None, api_key: str | None, model: str | None) -> Generator[Server]:
    """Yield a running server. One that had to be started is stopped after the block.

    Args:
        url: Address of a server that must run and is trusted; None for a server of this user at the default address, or
            a new server if none runs there.
        api_key: An API key of the running server, if it needs one.
        model: Name of the model; None for the only one.

    Raises:
        CliError: No server answers, or it does not serve the model.
    """
    if url is not None:
        yield _describe(_checked(url), api_key, model)
    elif _is_own_server(DEFAULT_URL):
        yield _describe(DEFAULT_URL, api_key, model)
    elif model is None:
        raise CliError(f"no server of yours runs at {DEFAULT_URL}: name the model to serve, with --model MODEL")
    else:
        own_key = secrets.token_urlsafe(_KEY_BYTES)
        with start_server(model, own_key) as address:
            yield _describe(address, own_key, None)


def _checked(url: str) -> str:
    address = urlsplit(url if "//" in url else f"http://{url}")
    if address.scheme not in ("http", "https") or not address.hostname:
        raise CliError(f"--url: {url!r} is not an address such as {DEFAULT_URL}")
    return f"{address.scheme}://{address.netloc}"


def _is_own_server(url: str) -> bool:
    """Return whether a server of lmwire runs at an address and is this user's or root's. It gets no key."""
    owner = listener_of(url)
    if owner == "other":
        print(f"lmwire: another user's program listens at {url}; only --url {url} uses it", file=sys.stderr)
    if owner != "user":
        return False
    try:
        with _open_any(f"{url}/ready") as response:
            msgspec.json.decode(response.read(MOST_BYTES), type=_Ready)
    except (OSError, HTTPException, msgspec.DecodeError):
        return False
    return True


def _open_any(url: str) -> Any:
    """Return the answer of a server, which may be an error: a server whose model loads is not ready."""
    try:
        return open_url(url, timeout=_PROBE_TIMEOUT_S)
    except HTTPError as error:
        return error


def _describe(url: str, api_key: str | None, name: str | None) -> Server:
    try:
        listed = _list_models(url, api_key)
    except HTTPError as error:
        if error.code == _UNAUTHORIZED:
            raise CliError(f"the server at {url} needs an API key: give it with --api-key or $LMWIRE_API_KEY") from None
        raise CliError(f"the server at {url} answers {error.code} to GET /v1/models") from None
    except OSError as error:
        reason = error.reason if isinstance(error, URLError) else error
        raise CliError(f"no server answers at {url}: {reason}; start one with lmwire serve MODEL") from None
    except (HTTPException, msgspec.DecodeError):
        raise CliError(f"the server at {url} does not list its models as `lmwire serve` does") from None
    for listed_model in listed.data:
        if len(listed_model.id) > LONGEST_NAME or not listed_model.id.isprintable():
            raise CliError(f"the server at {url} lists a model with a name that none has: {listed_model.id[:100]!r}")
    chosen = _choose(listed.data, name)
    return Server(
        url=url,
        api_key=api_key or _ANY_KEY,
        needs_key=api_key is not None,
        model=Model(chosen.id, chosen.context_length),
        codex_models=bytes(listed.models),
    )


def _list_models(url: str, api_key: str | None) -> _ModelList:
    headers = {"authorization": f"Bearer {api_key}"} if api_key else {}
    with open_url(Request(f"{url}/v1/models", headers=headers), timeout=ANSWER_TIMEOUT_S) as response:
        return msgspec.json.decode(response.read(MOST_BYTES), type=_ModelList)


def _choose(models: list[_ListedModel], name: str | None) -> _ListedModel:
    """Return the named model, or the only one, or the only one in memory."""
    names = ", ".join(model.id for model in models[:_SHOWN_MODELS]) + (", …" if len(models) > _SHOWN_MODELS else "")
    if name is not None:
        found = [model for model in models if model.id == name or model.id.rpartition("/")[2] == name]
        if not found:
            raise CliError(f"--model: the running server does not serve {name!r}; it serves: {names}")
        return found[0]
    candidates = models if len(models) == 1 else [model for model in models if model.loaded]
    if len(candidates) != 1:
        raise CliError(f"the running server has several models: choose one with --model; it serves: {names}")
    return candidates[0]
