"""Checks of the machine: device, memory, disk, network and ports."""

import os
import shutil
import socket
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Final
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import msgspec

from lmwire_protocol.extras import install_command

from ...child_process import python_command
from ...errors import LmwireError
from ...worker_programs import DeviceMemory, check_tool_formats, device_memory, local_models, run_program
from .installation import NVIDIA_DRIVER, Finding, device_extra

_PORT: Final = 8080
"""Port of `lmwire serve` without options."""
_TIMEOUT_S: Final = 5
_PROGRAM_S: Final = 60
_LOW_DISK_BYTES: Final = 5 * 10**9
_SHOWN: Final = 3


def check_device() -> tuple[DeviceMemory | None, Finding]:
    """Check that MLX can be imported, and return its device's memory and the finding."""
    try:
        memory = device_memory()
    except LmwireError as error:
        return None, Finding("fail", "device", " ".join(str(error).split())[:500], install_command(device_extra()))
    text = f"{memory.device}; models may take {_gb(memory.budget_bytes)}, and {_gb(memory.free_bytes)} are free"
    if memory.device.startswith("CPU") and NVIDIA_DRIVER.exists():
        return memory, Finding("warn", "device", f"{text}; there is an NVIDIA GPU", install_command("cuda"))
    return memory, Finding("ok", "device", text)


def check_blas(memory: DeviceMemory, environment: Mapping[str, str]) -> Iterator[Finding]:
    """Check that the products of matrices are fast: MLX's package for Linux's CPUs brings the reference BLAS.

    Args:
        memory: The memory of the device, with its name.
        environment: The environment variables, which workers inherit.
    """
    if sys.platform == "linux" and memory.device.startswith("CPU") and "blas" not in environment.get("LD_PRELOAD", ""):
        problem = "MLX's package has a slow one: prompts of models that are not quantized take many times as long"
        fix = "install OpenBLAS, such as Debian's libopenblas0-pthread, and set LD_PRELOAD=libopenblas.so.0"
        yield Finding("warn", "BLAS", problem, fix)


def check_models(memory: DeviceMemory) -> Iterator[Finding]:
    """Check which models on this machine can run and fit into the memory.

    Args:
        memory: The device's memory.
    """
    try:
        models = local_models()
    except LmwireError as error:
        yield Finding("fail", "models", " ".join(str(error).split())[:500], install_command(device_extra()))
        return
    able = sorted((model for model in models if not model.problem), key=lambda model: -model.load_bytes)
    fitting = [model for model in able if model.load_bytes <= min(memory.budget_bytes, memory.free_bytes)]
    largest = ", ".join(f"{model.id} ({_gb(model.load_bytes)})" for model in fitting[:_SHOWN])
    yield Finding(
        "ok", "models", f"{len(able)} can run; the largest that fit into the free memory: {largest or 'none'}"
    )
    large = [model.id for model in able if model.load_bytes > memory.budget_bytes]
    if large:
        fix = "take a smaller model, or one of fewer bits"
        yield Finding("warn", "models", f"too large for this machine: {', '.join(large)}", fix)
    if broken := [model.id for model in models if model.problem]:
        yield Finding("warn", "models", f"cannot run: {', '.join(broken)}", "lmwire models --all has the reasons")


def check_tool_calls(names: Sequence[str]) -> Iterator[Finding]:
    """Check for which models the format of tool calls is not known.

    Args:
        names: Names of models on this machine, or folders; empty for all models on this machine.
    """
    fix = "lmwire serve --tool-format NAME, or tool_format of a load; lmwire models --tool-formats lists the names"
    try:
        models = [model for model in local_models() if not model.problem and model.kind in ("text", "vision")]
        here = {name.lower(): model.path for model in models for name in (model.id, *model.aliases)}
        chosen = {name: here.get(name.lower(), name) for name in names} or {model.id: model.path for model in models}
        checks = {check.path: check for check in check_tool_formats(*chosen.values())}
    except LmwireError as error:
        yield Finding("warn", "tool calls", " ".join(str(error).split())[:500], "lmwire models --all has the reasons")
        return
    for name, path in chosen.items():
        check = checks.get(path)
        if check is not None and check.problem:
            yield Finding("warn", "tool calls", f"{name}: {check.problem}", fix)
        elif check is not None and names:
            yield Finding("ok", "tool calls", f"{name} writes {check.tool_format}")
        elif names:
            problem = f"{name}: no model of this name on this machine calls tools"
            yield Finding("warn", "tool calls", problem, f"lmwire pull {name}, or lmwire models for the names")


def check_disk() -> Iterator[Finding]:
    """Check the cache of the hub: its disk, and whether it can be written."""
    if find_spec("huggingface_hub") is None:
        return
    from huggingface_hub import constants

    cache = Path(constants.HF_HUB_CACHE)
    existing = next(folder for folder in (cache, *cache.absolute().parents) if folder.exists())
    free = shutil.disk_usage(existing).free
    if not os.access(existing, os.W_OK | os.X_OK):
        fix = f"make {existing} writable for you, or set HF_HOME to a folder of yours"
        yield Finding("fail", "disk", f"the cache {cache} cannot be written", fix)
    elif free < _LOW_DISK_BYTES:
        fix = "lmwire rm MODEL removes a model; HF_HOME moves the cache to another disk"
        yield Finding("warn", "disk", f"{_gb(free)} free in {cache}", fix)
    else:
        yield Finding("ok", "disk", f"{_gb(free)} free in {cache}")


def check_hub(*, offline: bool) -> Finding:
    """Check whether the hub answers.

    Args:
        offline: Whether to leave it alone.
    """
    if offline or find_spec("huggingface_hub") is None:
        return Finding("ok", "hub", "not asked")
    from huggingface_hub import constants

    if constants.HF_HUB_OFFLINE:
        return Finding("ok", "hub", "not asked: HF_HUB_OFFLINE is set, so nothing is downloaded")
    try:
        with urlopen(Request(constants.ENDPOINT, method="HEAD"), timeout=_TIMEOUT_S):
            return Finding("ok", "hub", f"{constants.ENDPOINT} answers")
    except HTTPError as error:
        return Finding("ok", "hub", f"{constants.ENDPOINT} answers (HTTP {error.code})")
    except (OSError, ValueError) as error:
        fix = "models on this machine work; to download others, check the network, HTTPS_PROXY and HF_ENDPOINT"
        return Finding("warn", "hub", f"{constants.ENDPOINT} does not answer: {error}", fix)


class _TemporaryFiles(msgspec.Struct):
    """The place in which a worker puts temporary files."""

    folder: str
    is_private: bool
    """True if no other user can change what is in the folder."""
    cache: str | None
    """The folder in the user's cache that is used otherwise; None if others can change that, too."""


def check_temporary_files() -> Finding:
    """Check that other users cannot change the code that MLX compiles."""
    try:
        command = python_command("lmwire_worker.process.private_directory")
        output, _ = run_program(command, _PROGRAM_S, "the directory for temporary files cannot be checked")
    except LmwireError as error:
        return Finding("warn", "temporary", str(error), "set TMPDIR to a folder of yours")
    place = msgspec.json.decode(output, type=_TemporaryFiles)
    folder = place.folder
    if place.is_private:
        return Finding("ok", "temporary", f"{folder} is yours alone")
    if place.cache:
        return Finding("ok", "temporary", f"others can write to {folder}, so workers use {place.cache}")
    fix = "set TMPDIR to a folder of yours with mode 0700, below folders that others cannot write to"
    problem = f"others can write to {folder} and to your cache, so each worker compiles MLX's code again"
    return Finding("warn", "temporary", problem, fix)


def check_port(port: int = _PORT) -> Finding:
    """Check whether the port of `lmwire serve` is free.

    Args:
        port: The port, on 127.0.0.1.
    """
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            fix = "lmwire serve --port 0 takes a free port; lmwire ps lists the servers of yours"
            return Finding("warn", "port", f"a program listens on port {port}", fix)
    return Finding("ok", "port", f"{port} is free for lmwire serve")


def _gb(count: int) -> str:
    return f"{count / 1e9:.1f} GB"
