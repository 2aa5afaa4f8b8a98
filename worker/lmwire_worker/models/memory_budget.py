"""Limits the memory of a model, its caches and its requests.

If memory runs out, the system may abort or kill the process, which no code can catch. So the worker predicts the need
and compares it with a budget before it allocates anything.
"""

import contextlib
import ctypes
import gc
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import mlx.core as mx

from lmwire_protocol import RequestError

from ..engine.interface import MemoryUsage, ModelInfo

DEVICE_FRACTION: Final = 0.9
"""Share of the device's memory in the default budget. The rest is for temporary buffers and the process itself."""
STEP_BYTES: Final = 256 * 2**20
"""Temporary memory of a step, in bytes. MLX is slow while it exceeds its limit."""
CONTROL_GROUP_LIMITS: Final = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
MEMINFO: Final = "/proc/meminfo"
ALLOCATION_FAILURES: Final = ("malloc", "unable to allocate", "out of memory")
"""Parts of the messages of MLX's allocators and of CUDA."""


def default_budget() -> int:
    """Return the default budget of a model, its caches and its requests, in bytes."""
    return int(DEVICE_FRACTION * device_bytes())


def limit_mlx_memory(budget: int) -> None:
    """Limit MLX to a budget in bytes. Beyond it, MLX returns freed buffers to the system."""
    mx.set_memory_limit(budget + STEP_BYTES)
    if mx.metal.is_available():
        mx.set_wired_limit(min(budget, device_bytes()))  # otherwise macOS pages weights out under pressure


def device_bytes() -> int:
    """Return the memory of the device in bytes: Metal's recommended maximum, a CUDA device's, or the machine's."""
    info = mx.device_info()
    size = info.get("max_recommended_working_set_size") or info.get("total_memory")
    return size if isinstance(size, int) else _machine_bytes()


def free_bytes() -> int | None:
    """Return the free memory plus what MLX uses now, in bytes; None if the system does not report it."""
    free: Any = mx.device_info().get("free_memory")
    if free is None and not mx.metal.is_available():
        free = _available_bytes()
    return None if free is None else free + mx.get_active_memory() + mx.get_cache_memory()


def check_fits(model: ModelInfo, others: int, limit: int, free: int | None) -> None:
    """Check that memory suffices for a model's weights and a short answer.

    Args:
        model: The model to load.
        others: Size of a short answer, in bytes; 0 for a model without answers.
        limit: Maximum for everything, in bytes.
        free: Free memory, in bytes; None if unknown.

    Raises:
        RequestError: out_of_memory.
    """
    there_are = limit if free is None else min(limit, free)
    if model.weights_bytes + others > there_are:
        answer = f" and {format_bytes(others)} for a short answer" if others else ""
        need = f"{model.path} needs {format_bytes(model.weights_bytes)} for its weights{answer}"
        problem = f"{need}, and {format_bytes(there_are)} of {format_bytes(limit)} are free; `force` loads it anyway"
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
    """Return unused memory to the system."""
    gc.collect()  # modules refer to each other in circles
    mx.clear_cache()
    with contextlib.suppress(AttributeError, OSError):  # only glibc has it; it would keep as much as a model
        ctypes.CDLL(None).malloc_trim(0)


def is_out_of_memory(error: Exception) -> bool:
    """Return whether an exception means that memory ran out."""
    words = str(error).lower()
    return isinstance(error, MemoryError) or any(word in words for word in ALLOCATION_FAILURES)


def format_bytes(count: int) -> str:
    """Return a number of bytes as text, such as "1.5 GiB"."""
    return f"{count / 2**30:.1f} GiB" if count >= 10 * 2**30 else f"{count / 2**20:.1f} MiB"


def _machine_bytes() -> int:
    sizes = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for path in CONTROL_GROUP_LIMITS:
        with contextlib.suppress(OSError, ValueError):  # absent, or `max`
            sizes.append(int(Path(path).read_text()))
    return min(sizes)


def _available_bytes() -> int | None:
    try:
        lines = Path(MEMINFO).read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")), None)
