"""Find the servers and workers of this user among the running processes.

The system knows the processes, their memory and their addresses. What a worker has loaded is in its run file. The paths
/v1/models and /metrics of a server have the models that it would load, and its requests.
"""

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from http.client import HTTPException
from pathlib import PurePath
from typing import Final, Literal
from urllib.error import HTTPError
from urllib.request import Request

import msgspec
import psutil

from ..child_process import python_command
from ..worker_programs import run_program
from .local_servers import listener_of, open_url

Kind = Literal["server", "worker"]
_MODULES: Final[dict[str, Kind]] = {"lmwire_http": "server", "lmwire_worker": "worker"}
_SUBCOMMANDS: Final[dict[str, Kind]] = {"serve": "server", "worker": "worker", "mock": "worker"}
_TIMEOUT_S: Final = 5
"""Longest time for a server to answer. It waits 2 s for its workers, and lists the models on this machine."""
_PROGRAM_S: Final = 60
"""Longest time for the worker's program that reads the run files. It takes a moment, unless the machine is busy."""
_MAX_BYTES: Final = 4 * 2**20
_CACHED: Final = re.compile(r"/models--([^/]+)/snapshots/[^/]+$")
_BUILTIN: Final = re.compile(r"/lmwire_worker/builtin/([^/]+)$")
_ACTIVE: Final = ("lmwire_worker_requests_active",)
_WAITING: Final = ("lmwire_worker_requests_queued", "lmwire_model_requests_waiting")


@dataclass(frozen=True)
class RunningProcess:
    """A server or a worker."""

    pid: int
    kind: Kind
    url: str | None
    """Address of a server; None for a worker, and for a server that does not listen yet."""
    host: str | None
    """The program that started a worker, and its process id; None for a server."""
    models: list[str]
    """Names of the loaded models: a worker's, or those of all workers of a server."""
    memory_bytes: int
    """Memory of the process in bytes, without that of its children and without a GPU's own."""
    running: int | None
    """Requests of a server in progress; None if unknown."""
    queued: int | None
    """Requests of a server that wait; None if unknown."""
    started_at: float
    """Seconds since 1970."""
    problem: str | None = None
    """Why a server's requests and models are unknown."""
    unloaded_models: list[str] = field(default_factory=list[str])
    """Names of the models that a server loads when a request names them, in the server's order."""


class _LoadedModel(msgspec.Struct):
    """The model that a running worker has loaded, as its run file says."""

    pid: int
    model: str
    """The name that its host gave."""
    folder: str


class _ListedModel(msgspec.Struct):
    id: str
    loaded: bool = False


class _ListedModels(msgspec.Struct):
    data: list[_ListedModel]


@dataclass
class _Answers:
    """Figures and names that a server has reported."""

    running: int | None = None
    queued: int | None = None
    unloaded_models: list[str] = field(default_factory=list[str])
    problem: str | None = None


@dataclass(frozen=True)
class _Found:
    process: psutil.Process
    kind: Kind
    models: dict[int, str] = field(default_factory=dict[int, str])
    """Names of the loaded models, by the process id of the worker."""


def find_running(api_key: str | None = None) -> list[RunningProcess]:
    """Return the servers and workers of this user, each server before its workers.

    Args:
        api_key: The key for servers that want one.

    Raises:
        LmwireError: The worker's program, which reads the run files, has failed.
    """
    output, _ = run_program(python_command("lmwire_worker.process.run_files"), _PROGRAM_S, "workers cannot be found")
    loaded_models = msgspec.json.decode(output, type=list[_LoadedModel])
    models = {loaded.pid: model_name(loaded.folder, loaded.model) for loaded in loaded_models}
    described = [process for found in _find(models) if (process := _describe(found, api_key))]
    return sorted(described, key=lambda process: (process.kind, process.pid))


def _find(models: dict[int, str]) -> Iterator[_Found]:
    for process in psutil.process_iter():
        try:
            if process.uids().effective == os.geteuid() and (kind := kind_of(process.cmdline())):
                yield _Found(process, kind, models)
        except psutil.Error:  # it has ended, or is another user's
            continue


def model_name(folder: str, given: str) -> str:
    """Return a model's hub id or built-in name, by its folder: a server loads models by their folders.

    Args:
        folder: The model folder.
        given: The name that the host gave, which is returned for a folder of the user's own.
    """
    if cached := _CACHED.search(folder):
        return cached[1].replace("--", "/")
    builtin = _BUILTIN.search(folder)
    return f"builtin:{builtin[1]}" if builtin else given


def kind_of(command: Sequence[str]) -> Kind | None:
    """Return what a command line starts; None if it is not a server or a worker of lmwire."""
    python = bool(command) and PurePath(command[0]).name.startswith("python")
    words = list(command[1:] if python else command)
    if python and "-m" in words[:4]:
        module = words[words.index("-m") + 1 :][:1]
        return _MODULES.get(module[0]) if module else None
    if len(words) > 1 and PurePath(words[0]).name == "lmwire":
        return _SUBCOMMANDS.get(words[1])
    return None


def _describe(found: _Found, api_key: str | None) -> RunningProcess | None:
    """Return the description of a process; None if it has ended."""
    process, is_server = found.process, found.kind == "server"
    try:
        with process.oneshot():
            memory, started_at, parent = process.memory_info().rss, process.create_time(), process.parent()
        workers = [child.pid for child in process.children()] if is_server else [process.pid]
        url = _address(process) if is_server else None
        host = None if is_server else _name(parent)
    except psutil.Error:
        return None
    answers = ask_server(url, api_key) if url else _Answers()
    return RunningProcess(
        pid=process.pid,
        kind=found.kind,
        url=url,
        host=host,
        models=sorted({found.models[pid] for pid in workers if pid in found.models}),
        memory_bytes=memory,
        running=answers.running,
        queued=answers.queued,
        started_at=started_at,
        problem=answers.problem,
        unloaded_models=answers.unloaded_models,
    )


def _name(parent: psutil.Process | None) -> str:
    """Return the name of a worker's host for a person to read."""
    if parent is None:
        return "a host that has ended"
    try:
        command = parent.cmdline()
        scripts = [PurePath(word).name for word in command[:5] if not word.startswith("-")]
        named = scripts[1] if len(scripts) > 1 and scripts[0].startswith("python") else parent.name()
        return f"{'lmwire serve' if kind_of(command) == 'server' else named} ({parent.pid})"
    except psutil.Error:
        return str(parent.pid)


def _address(process: psutil.Process) -> str | None:
    """Return the address at which a server listens; None if it does not listen yet."""
    for connection in process.net_connections("inet"):
        if connection.status == psutil.CONN_LISTEN and connection.laddr:
            host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(connection.laddr.ip, connection.laddr.ip)
            return (
                f"http://[{host}]:{connection.laddr.port}" if ":" in host else f"http://{host}:{connection.laddr.port}"
            )
    sockets = [connection.laddr for connection in process.net_connections("unix") if connection.laddr]
    return f"unix:{sockets[0]}" if sockets else None


def ask_server(url: str, api_key: str | None) -> _Answers:
    """Ask a server for the number of its requests, and for the models that it has not loaded.

    Args:
        url: The server's address.
        api_key: Its key, if it wants one.
    """
    if not url.startswith("http"):
        return _Answers(problem="asked over http only")
    if listener_of(url) != "user":  # as with a server in a container, whose port another user has here
        return _Answers(problem="not asked: its address is not this user's alone")
    try:
        metrics = _get(f"{url}/metrics", api_key).decode(errors="replace")
    except HTTPError as error:
        return _Answers(problem="needs --api-key" if error.code == 401 else f"HTTP {error.code}")
    except (OSError, HTTPException):
        return _Answers(problem="does not answer")
    return _Answers(_sum(metrics, _ACTIVE), _sum(metrics, _WAITING), _unloaded_models(url, api_key))


def _unloaded_models(url: str, api_key: str | None) -> list[str]:
    """Return the models that a server has not loaded; none if it does not list them in time."""
    try:
        listed = msgspec.json.decode(_get(f"{url}/v1/models", api_key), type=_ListedModels)
    except (OSError, HTTPException, msgspec.MsgspecError):
        return []
    return [model.id for model in listed.data if not model.loaded]


def _get(url: str, api_key: str | None) -> bytes:
    headers = {"authorization": f"Bearer {api_key}"} if api_key else {}
    with open_url(Request(url, headers=headers), timeout=_TIMEOUT_S) as response:
        return response.read(_MAX_BYTES)


def _sum(metrics: str, names: Sequence[str]) -> int:
    pattern = rf"^(?:{'|'.join(names)})(?:\{{.*\}})? (\d+(?:\.\d+)?)$"
    return int(sum(float(value) for value in re.findall(pattern, metrics, flags=re.MULTILINE)))
