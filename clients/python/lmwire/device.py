"""The memory of the device that models run on. The worker's package finds it out, in a process of its own."""

from typing import Final

import msgspec

from .child_process import python_command
from .worker_programs import run_program

_TIMEOUT_S: Final = 30.0
"""Seconds after which the program is killed. On CUDA it prepares the device."""


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
