"""The HTTP server that an agent uses: one that runs already, or one that is started for the agent."""

import contextlib
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator
from dataclasses import dataclass
from typing import IO, Any, Final
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import ProxyHandler, Request, build_opener

import msgspec

from ...child_process import child_environment, python_command
from ..arguments.launch import DEFAULT_URL
from ..errors import CliError
from ..progress import make_progress_area

_ANSWER_TIMEOUT_S: Final = 10
"""Longest time for the server to answer a question about itself, in seconds."""
_POLL_S: Final = 0.1
_STOP_TIMEOUT_S: Final = 40
"""Longest time for a started server to stop, in seconds. Its running requests have 30 s."""
_ANY_KEY: Final = "lmwire"
"""API key for a server that needs none. Agents insist on one."""
_UNAUTHORIZED: Final = 401
_MOST_BYTES: Final = 16 * 2**20
_SHOWN_MODELS: Final = 8

_open = build_opener(ProxyHandler({})).open  # a proxy of the environment must not see requests to this machine


class _LoadProgress(msgspec.Struct):
    """Progress of a load in the answer of /ready."""

    stage: str
    current: int
    unit: str
    total: int | None = None


class _Ready(msgspec.Struct):
    """The answer of /ready."""

    ready: bool = False
    load_progress: _LoadProgress | None = None


class _ListedModel(msgspec.Struct):
    """A model in the answer of /v1/models."""

    id: str
    owned_by: str = ""
    context_length: int | None = None
    loaded: bool = False


class _ModelList(msgspec.Struct):
    data: list[_ListedModel]
    models: msgspec.Raw = msgspec.Raw(b"[]")


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
        url: Address of a server that must run; None for the default address, or a new server if none runs there.
        api_key: An API key of the running server, if it needs one.
        model: Name of the model; None for the only one.

    Raises:
        CliError: No server answers, or it does not serve the model.
    """
    running = None if url is None and not _is_lmwire(DEFAULT_URL, api_key) else _checked(url or DEFAULT_URL)
    if running:
        yield _describe(running, api_key, model)
    elif model is None:
        raise CliError(f"no server runs at {DEFAULT_URL}: name the model to serve, with --model MODEL")
    else:
        with _started(model) as address:
            yield _describe(address, None, None)


def _checked(url: str) -> str:
    address = urlsplit(url if "//" in url else f"http://{url}")
    if address.scheme not in ("http", "https") or not address.hostname:
        raise CliError(f"--url: {url!r} is not an address such as {DEFAULT_URL}")
    return f"{address.scheme}://{address.netloc}"


def _is_lmwire(url: str, api_key: str | None) -> bool:
    """Return whether a server of lmwire runs at an address. One that refuses the key may be another program's."""
    try:
        listed = _list_models(url, api_key)
    except (OSError, msgspec.DecodeError):
        return False
    return any(model.owned_by == "lmwire" for model in listed.data)


def _describe(url: str, api_key: str | None, name: str | None) -> Server:
    try:
        listed = _list_models(url, api_key)
    except HTTPError as error:
        if error.code == _UNAUTHORIZED:
            raise CliError(f"the server at {url} needs an API key: give it with --api-key or $LMWIRE_API_KEY") from None
        raise CliError(f"the server at {url} answers {error.code} to GET /v1/models") from None
    except msgspec.DecodeError:
        raise CliError(f"the server at {url} does not list its models as `lmwire serve` does") from None
    except OSError as error:
        reason = error.reason if isinstance(error, URLError) else error
        raise CliError(f"no server answers at {url}: {reason}; start one with lmwire serve MODEL") from None
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
    with _open(Request(f"{url}/v1/models", headers=headers), timeout=_ANSWER_TIMEOUT_S) as response:
        return msgspec.json.decode(response.read(_MOST_BYTES), type=_ModelList)


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


@contextlib.contextmanager
def _started(model: str) -> Generator[str]:
    """Yield the address of a new server that has loaded the model. The server also stops if this process dies."""
    command = python_command("lmwire_http", "--port", "0", "--preload", "--stop-at-eof", "--", model)
    print(f"lmwire: starting a server for {model}", file=sys.stderr)
    with (
        tempfile.NamedTemporaryFile("ab", prefix="lmwire-server-") as written,
        open(written.name, encoding="utf-8", errors="replace") as log,
        subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=written,
            env=child_environment(),
            start_new_session=True,  # Ctrl-C in the agent must not stop the server
        ) as process,
    ):
        try:
            yield _wait_until_ready(process, log)
        finally:
            _stop(process)


def _wait_until_ready(process: "subprocess.Popen[bytes]", log: IO[str]) -> str:
    """Return the server's address once its model is loaded. Until then, show its log and the load on stderr."""
    lines: list[str] = []
    with _StartDisplay(log) as display:
        while process.poll() is None:
            lines += display.copy_log()
            if found := re.search(r"serves on (\S+)", "".join(lines)):
                state = _ask_readiness(found[1])
                if state.ready:
                    return found[1]
                display.show(state.load_progress)
            time.sleep(_POLL_S)
        display.copy_log()
    raise CliError("the server could not start; its log is above")


class _StartDisplay(contextlib.AbstractContextManager["_StartDisplay"]):
    """The log of a server that starts, on stderr, and on a terminal the bar of the load below it.

    Args:
        log: The log.
    """

    def __init__(self, log: IO[str]) -> None:
        self._log = log
        self._area = make_progress_area(sys.stderr)
        self._bar = self._area.begin() if self._area else None

    def __exit__(self, *_: object) -> None:
        if self._area:
            self._area.close()

    def copy_log(self) -> list[str]:
        """Show the log's new lines, without this command's own requests, and return them."""
        lines = [line for line in self._log if "path=/ready" not in line]
        if self._area is None:
            sys.stderr.writelines(lines)
        elif shown := "".join(line for line in lines if " info downloading " not in line):  # the bar shows it
            self._area.print_above(shown)
        return lines

    def show(self, load: _LoadProgress | None) -> None:
        """Show how far the load has come."""
        if self._bar and load:
            self._bar.show(load.stage, load.current, load.total, load.unit)


def _ask_readiness(url: str) -> _Ready:
    """Return whether a server can serve requests, and how far the load has come that it waits for."""
    try:
        with _open(f"{url}/ready", timeout=_ANSWER_TIMEOUT_S):
            return _Ready(ready=True)
    except HTTPError as error:
        return msgspec.json.decode(error.read(_MOST_BYTES), type=_Ready)
    except OSError:
        return _Ready()


def _stop(process: "subprocess.Popen[Any]") -> None:
    assert process.stdin
    process.stdin.close()
    try:
        process.wait(_STOP_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        process.kill()
