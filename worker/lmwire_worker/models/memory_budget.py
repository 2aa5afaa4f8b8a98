"""How much memory a model, its caches and its requests may take together.

A machine that has too little aborts or kills the process, which no code can catch. So what is needed is predicted and
compared with a budget before anything is allocated.
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
"""Of a device's memory: the rest is for what a step needs for a moment, and for the process itself."""
STEP_BYTES: Final = 256 * 2**20
"""What a step needs for a moment. While it has more than its limit, MLX works slowly."""
CONTROL_GROUP_LIMITS: Final = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
MEMINFO: Final = "/proc/meminfo"
ALLOCATION_FAILURES: Final = ("malloc", "unable to allocate", "out of memory")
"""What MLX's allocators and CUDA say."""


def default_budget() -> int:
    """Bytes for a model, its caches and its requests together where nobody says how many."""
    return int(DEVICE_FRACTION * device_bytes())


def limit_mlx_memory(budget: int) -> None:
    """Lets MLX keep no more than the budget: beyond it, freed buffers are given back and not kept for the next use."""
    mx.set_memory_limit(budget + STEP_BYTES)
    if mx.metal.is_available():
        mx.set_wired_limit(min(budget, device_bytes()))  # macOS would page weights out under pressure


def device_bytes() -> int:
    """The memory of the device that computes: what Metal recommends at most, a CUDA device's own, or the machine's."""
    info = mx.device_info()
    size = info.get("max_recommended_working_set_size") or info.get("total_memory")
    return size if isinstance(size, int) else _machine_bytes()


def free_bytes() -> int | None:
    """What other processes leave, with what MLX holds now; None where the system does not say."""
    free: Any = mx.device_info().get("free_memory")
    if free is None and not mx.metal.is_available():
        free = _available_bytes()
    return None if free is None else free + mx.get_active_memory() + mx.get_cache_memory()


def check_fits(model: ModelInfo, others: int, limit: int, free: int | None) -> None:
    """Checks that there is memory for a model's weights and the least that it needs besides.

    Args:
        model: What is to be loaded.
        others: Bytes that a short answer takes; 0 for a model that gives none.
        limit: Bytes that everything may take together.
        free: Bytes that there are; None when that is not known.

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
    """What MLX has now. May be called from any thread."""
    return MemoryUsage(mx.get_active_memory(), mx.get_cache_memory(), mx.get_peak_memory())


def measure_freed(let_go: Callable[[], None]) -> int:
    """Has memory given back, and returns how many bytes.

    Args:
        let_go: Drops whatever holds it.
    """
    before = mx.get_active_memory() + mx.get_cache_memory()
    let_go()
    release_cached_memory()
    return max(before - mx.get_active_memory() - mx.get_cache_memory(), 0)


def release_cached_memory() -> None:
    """Gives memory that nothing needs any more back to the system."""
    gc.collect()  # modules refer to one another in circles
    mx.clear_cache()
    with contextlib.suppress(AttributeError, OSError):  # glibc's alone: it keeps what it can use again, a model's size
        ctypes.CDLL(None).malloc_trim(0)


def is_out_of_memory(error: Exception) -> bool:
    """Whether memory could not be allocated, where that is an exception and not the process's end."""
    words = str(error).lower()
    return isinstance(error, MemoryError) or any(word in words for word in ALLOCATION_FAILURES)


def format_bytes(count: int) -> str:
    """Bytes for people."""
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
