"""Programs of the worker's package, each in a process of its own: the models here, and the device's memory."""

import logging
import os
import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Final, Literal, TypeAlias

import msgspec

from lmwire_protocol.extras import worker_not_installed

from .child_process import child_environment, python_command, python_program
from .errors import LmwireError

running: set["subprocess.Popen[bytes]"] = set()
_TIMEOUT_S: Final = 30.0
"""Seconds after which the program is killed. On CUDA it prepares the device."""
LISTING_S: Final = 60.0
"""Seconds after which a listing is killed. It ends by itself after half of them, with the models found so far."""
ModelKind: TypeAlias = Literal["text", "vision", "speech", "synthesis", "embeddings"]
_log = logging.getLogger("lmwire")


def run_program(command: Sequence[str], timeout: float, problem: str) -> tuple[bytes, str]:
    """Run a program, and return its stdout and its stderr.

    Args:
        command: The program and its arguments.
        timeout: Seconds after which it is killed.
        problem: The beginning of an error's sentence.

    Raises:
        LmwireError: The program failed, or was killed.
    """
    pipe, nothing = subprocess.PIPE, subprocess.DEVNULL
    environment = child_environment()
    with subprocess.Popen(command, stdin=nothing, stdout=pipe, stderr=pipe, env=environment) as process:
        running.add(process)
        try:
            output, errors = process.communicate(timeout=timeout)
        except BaseException as error:
            process.kill()
            if isinstance(error, subprocess.TimeoutExpired):
                raise LmwireError(f"{problem} in {timeout:.0f} s") from None
            raise
        finally:
            running.discard(process)
    text = errors.decode(errors="replace")
    if process.returncode:
        raise LmwireError(f"{problem}: {text}")
    return output, text


def kill_programs() -> None:
    """Kill the running programs of this process. Their callers get an error."""
    for process in list(running):
        process.kill()


class DeviceMemory(msgspec.Struct, frozen=True, kw_only=True):
    """The memory of this machine's device: with Metal and on a CPU, the system's; with CUDA, the device's own."""

    budget_bytes: int
    """Memory that models should take together, in bytes: the default of a worker's `--memory-limit`."""
    free_bytes: int
    """Free memory, in bytes; 0 while the system is critically short of memory."""
    device: str = ""
    """The kind of the device: Metal, CUDA or CPU, with its own name."""


def device_memory() -> DeviceMemory:
    """Return the memory of this machine's device, which takes less than a second without CUDA.

    Raises:
        LmwireError: The worker's libraries are not installed here, or the device cannot be used.
    """
    command = python_command("lmwire_worker.device_memory")
    output, _ = run_program(command, _TIMEOUT_S, "the memory of this machine cannot be measured")
    return msgspec.json.decode(output, type=DeviceMemory)


class LocalModel(msgspec.Struct, frozen=True, kw_only=True):
    """A model on this machine. A field is None if the model's files do not have it."""

    id: str
    """`owner/name`, `builtin:tiny`, or the folder as it was given."""
    path: str
    """The model folder, which `load` accepts."""
    aliases: list[str]
    """Other names that `load` accepts."""
    size_bytes: int
    """Total size of the files, in bytes."""
    model_type: str | None
    bits: int | None
    """Bits of a quantized weight."""
    context_len: int | None
    problem: str | None
    """The reason why the model cannot run, or None if it can."""
    load_bytes: int = 0
    """Estimated memory of a load, in bytes: the weights and a short answer. 0 if unknown."""
    kind: ModelKind | None = None
    """The kind of its work: text, images and text, transcription, synthesis of speech, or vectors."""


def local_models(*folders: str, trust_remote_code: bool = False) -> list[LocalModel]:
    """Return the models in the hub's cache and the built-in ones, which takes about a second.

    Args:
        folders: Model folders to describe instead. One that cannot be described has a `problem`, and the log has a
            warning.
        trust_remote_code: Whether models that bring their own code count as models that can run.

    Raises:
        LmwireError: The worker is not installed here, or the listing failed.
    """
    trusted = ("--trust-remote-code",) if trust_remote_code else ()
    command = listing_command("--json", "--all", *trusted, "--", *folders)
    output, errors = run_program(command, LISTING_S, "the models on this machine cannot be listed")
    for line in errors.splitlines():
        if line.startswith("lmwire: "):
            _log.warning(line.removeprefix("lmwire: "))
    models = msgspec.json.decode(output, type=list[LocalModel])
    if len(models) < len(folders):
        raise LmwireError(f"{folders[len(models)]} cannot be described in time")
    return models


class ToolFormatCheck(msgspec.Struct, frozen=True, kw_only=True):
    """A model's format of tool calls, and the problem with it."""

    path: str
    """The model folder."""
    tool_format: str
    problem: str | None
    """The consequence of a model that shows no known format; None if it shows one."""


def check_tool_formats(*folders: str) -> list[ToolFormatCheck]:
    """Return how each model's format of tool calls is found, without those that generate no text.

    Args:
        folders: The model folders. Those that take longer than some 20 seconds together are left out.

    Raises:
        LmwireError: The worker is not installed here, or the check failed.
    """
    _require_worker()
    command = python_command("lmwire_worker.prompts.tool_format_check", *folders)
    output, _ = run_program(command, LISTING_S, "the formats of tool calls cannot be checked")
    return msgspec.json.decode(output, type=list[ToolFormatCheck])


class NameProblem(msgspec.Struct, frozen=True, kw_only=True):
    """A name that no load can find."""

    name: str
    problem: str
    """A sentence with the reason and with similar names."""
    retryable: bool
    """True if the hub could not be asked, so that a later load may find the model."""


def find_name_problems(*names: str) -> list[NameProblem]:
    """Return which of these names no load can find. The hub is asked, and nothing is downloaded.

    Args:
        names: Names of models that `local_models` does not list.

    Raises:
        LmwireError: The worker is not installed here, or the check failed.
    """
    _require_worker()
    command = python_command("lmwire_worker.models.name_check", *names)
    output, _ = run_program(command, LISTING_S, "the names of models cannot be checked")
    return msgspec.json.decode(output, type=list[NameProblem])


def end_listings() -> None:
    """Kill the running listings and name checks of this process. Their callers get an error."""
    kill_programs()


def listing_command(*options: str) -> list[str]:
    """Return the command that lists models, and ends when this process does.

    Args:
        options: More arguments of the command.

    Raises:
        LmwireError: The worker is not installed here.
    """
    _require_worker()
    return python_command("lmwire_worker.list_models", "--parent", str(os.getpid()), *options)


def _require_worker() -> None:
    if python_program() == sys.executable and find_spec("huggingface_hub") is None:
        raise LmwireError(worker_not_installed())
