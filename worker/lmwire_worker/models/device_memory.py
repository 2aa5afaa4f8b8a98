"""Limits the memory of a model, its caches and its requests.

If memory runs out, the system may abort or kill the process, which no code can catch. So the worker predicts the need
and compares it with a budget before it allocates anything.
"""

import contextlib
import ctypes
import gc
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Final

import mlx.core as mx

from lmwire_protocol import RequestError

from ..engine.interface import MemoryUsage, ModelInfo
from ..process.memory_pressure import MemoryPressure, read_memory_pressure

DEVICE_FRACTION: Final = 0.9
"""Share of the device's memory in the default budget. The rest is for temporary buffers and the process itself."""
WIRED_FRACTION: Final = 0.5
"""Share of the device's memory from which weights are wired. macOS leaves smaller ones where they are."""
STEP_BYTES: Final = 256 * 2**20
"""Temporary memory of a step, in bytes. MLX is slow while it exceeds its limit."""
SYSTEM_MEMORY: Final = "/proc/meminfo"
"""Linux's file about the system's memory."""
_AVAILABLE: Final = re.compile(r"^MemAvailable:\s*(\d+) kB$", re.MULTILINE)
CONTROL_GROUP_LIMITS: Final = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
ALLOCATION_FAILURES: Final = ("malloc", "unable to allocate", "out of memory")
"""Parts of the messages of MLX's allocators and of CUDA."""


def default_budget() -> int:
    """Return the default budget of a model, its caches and its requests, in bytes."""
    return int(DEVICE_FRACTION * device_bytes())


def limit_mlx_memory(budget: int, weights_bytes: int = 0) -> None:
    """Limit MLX to a budget, while no request runs. Beyond it, MLX returns freed buffers to the system.

    Args:
        budget: The budget, in bytes.
        weights_bytes: Size of the weights that may be wired.
    """
    mx.set_memory_limit(budget + STEP_BYTES)
    if mx.metal.is_available():
        mx.set_wired_limit(wired_bytes(weights_bytes, device_bytes(), read_pressure()))


def wired_bytes(weights_bytes: int, device_bytes: int, pressure: MemoryPressure) -> int:
    """Return how much memory MLX may wire on Metal, in bytes: weights that macOS would page out, and no more.

    Wired memory is lost to all other programs. So small weights are not wired, nothing is wired while the system is
    short of memory, and a part of the device's memory always remains. This has not run on a Mac.

    Args:
        weights_bytes: Size of the weights.
        device_bytes: Memory of the device that Metal recommends as a maximum.
        pressure: The pressure on the system's memory now.
    """
    if pressure is not MemoryPressure.NORMAL or weights_bytes < WIRED_FRACTION * device_bytes:
        return 0
    return min(weights_bytes + STEP_BYTES, int(DEVICE_FRACTION * device_bytes))


def device_bytes() -> int:
    """Return the memory of the device in bytes: Metal's recommended maximum, a CUDA device's, or the machine's."""
    info = mx.device_info()
    size = info.get("max_recommended_working_set_size") or info.get("total_memory")
    return size if isinstance(size, int) else _machine_bytes()


def device_name() -> str:
    """Return the kind of the device, which is Metal, CUDA or CPU, with its own name if it has one."""
    kind = "Metal" if mx.metal.is_available() else "CUDA" if has_own_memory() else "CPU"
    name = mx.device_info().get("device_name")
    return f"{kind} ({name})" if name else kind


def free_bytes() -> int:
    """Return the free memory plus what MLX uses now, in bytes. No more than that is free under critical pressure."""
    own = mx.get_active_memory() + mx.get_cache_memory()
    if has_own_memory():
        return int(mx.device_info()["free_memory"]) + own
    return own if read_pressure() is MemoryPressure.CRITICAL else available_system_bytes() + own


def has_own_memory() -> bool:
    """Return whether the device has memory of its own, as CUDA devices do, and reports how much is free."""
    return "free_memory" in mx.device_info()


def available_system_bytes() -> int:
    """Return the memory that programs can get without swapping, in bytes."""
    if found := _AVAILABLE.search(_read(SYSTEM_MEMORY)):
        return int(found[1]) * 1024
    import psutil  # on Linux it would take a tenth of a start

    return psutil.virtual_memory().available


def read_pressure() -> MemoryPressure:
    """Return the pressure on the system's memory; NORMAL on a device with memory of its own. Safe in any thread."""
    return MemoryPressure.NORMAL if has_own_memory() else read_memory_pressure()


def check_fits(model: ModelInfo, others: int, limit: int, free: int) -> None:
    """Check that memory suffices for a model's weights and a short answer.

    Args:
        model: The model to load.
        others: Size of a short answer, in bytes; 0 for a model without answers.
        limit: Maximum for everything, in bytes.
        free: Free memory, in bytes.

    Raises:
        RequestError: out_of_memory.
    """
    there_are = min(limit, free)
    if model.weights_bytes + others > there_are:
        answer = f" and {format_bytes(others)} for a short answer" if others else ""
        need = f"{model.path} needs {format_bytes(model.weights_bytes)} for its weights{answer}"
        problem = f"{need}, and {format_bytes(there_are)} of {format_bytes(limit)} are free"
        if read_pressure() is MemoryPressure.CRITICAL:
            problem += ", because the system is critically short of memory"
        problem += "; `force` loads it anyway"
        raise RequestError("out_of_memory", problem)


def memory_usage() -> MemoryUsage:
    """Return the memory that MLX uses. Safe in any thread."""
    return MemoryUsage(mx.get_active_memory(), mx.get_cache_memory(), mx.get_peak_memory())


def measure_freed(let_go: Callable[[], None]) -> int:
    """Call a function that drops references, and return the number of bytes that this freed.

    Args:
        let_go: The function.
    """
    before = mx.get_active_memory() + mx.get_cache_memory()
    let_go()
    release_cached_memory()
    return max(before - mx.get_active_memory() - mx.get_cache_memory(), 0)


def release_cached_memory() -> None:
    """Return the memory of dropped models to the system."""
    gc.collect()  # modules refer to each other in circles
    release_unused_memory()


def release_unused_memory() -> None:
    """Return memory that was freed to the system: that of MLX, and that of the C library."""
    mx.clear_cache()
    with contextlib.suppress(AttributeError, OSError):  # only glibc has it; it would keep as much as a model
        ctypes.CDLL(None).malloc_trim(0)


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether an exception means that memory ran out."""
    words = str(error).lower()
    return isinstance(error, MemoryError) or any(word in words for word in ALLOCATION_FAILURES)


def format_bytes(count: int) -> str:
    """Return a number of bytes as text, such as "1.5 GiB"."""
    return f"{count / 2**30:.1f} GiB" if count >= 10 * 2**30 else f"{count / 2**20:.1f} MiB"


def _machine_bytes() -> int:
    sizes = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for path in CONTROL_GROUP_LIMITS:
        with contextlib.suppress(ValueError):  # absent, or `max`
            sizes.append(int(_read(path)))
    return min(sizes)


def _read(path: str) -> str:
    """Return the text of one of the system's files; empty if there is none."""
    try:
        return Path(path).read_text()
    except OSError:
        return ""
