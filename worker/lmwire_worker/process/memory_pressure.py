"""Read the pressure on the system's memory: the kernel's level on macOS, stall times on Linux.

macOS: 1, 2 and 4 are the levels of
https://developer.apple.com/documentation/dispatch/dispatchsource/memorypressureevent.
Linux: pressure stall information, https://docs.kernel.org/accounting/psi.html.
"""

import re
import sys
from enum import IntEnum
from typing import Final


class MemoryPressure(IntEnum):
    """Levels of the pressure on the system's memory."""

    NORMAL = 0
    WARNING = 1
    """The system reclaims memory. Caches should shrink."""
    CRITICAL = 2
    """The system may kill processes soon."""


PRESSURE_FILES: Final = ("/sys/fs/cgroup/memory.pressure", "/proc/pressure/memory")
"""Pressure of this control group, and of the machine."""
STALLED_PERCENT: Final = {"some": (10.0, MemoryPressure.WARNING), "full": (20.0, MemoryPressure.CRITICAL)}
"""Share of the last 10 s in which some or all processes waited for memory, in percent, and the level from there on.

systemd-oomd kills processes from 60 % on.
"""
_AVERAGE: Final = re.compile(r"^(some|full) avg10=([\d.]+)", re.MULTILINE)
_MACOS_NAME: Final = b"kern.memorystatus_vm_pressure_level"
_MACOS_LEVELS: Final = {2: MemoryPressure.WARNING, 4: MemoryPressure.CRITICAL}


def read_memory_pressure() -> MemoryPressure:
    """Return the pressure on the system's memory; NORMAL if the system does not report it. Takes microseconds."""
    if sys.platform == "darwin":
        return _macos_pressure()
    return max(map(_stall_pressure, PRESSURE_FILES))


def _macos_pressure() -> MemoryPressure:
    import ctypes  # it would slow the start of every worker

    level = ctypes.c_int(0)
    size = ctypes.c_size_t(ctypes.sizeof(level))
    failed = ctypes.CDLL(None).sysctlbyname(_MACOS_NAME, ctypes.byref(level), ctypes.byref(size), None, 0)
    return MemoryPressure.NORMAL if failed else _MACOS_LEVELS.get(level.value, MemoryPressure.NORMAL)


def _stall_pressure(path: str) -> MemoryPressure:
    try:
        with open(path) as file:
            found = _AVERAGE.findall(file.read())
    except OSError:  # a kernel without it
        return MemoryPressure.NORMAL
    limits = [(float(percent), *STALLED_PERCENT[kind]) for kind, percent in found]
    return max((level for percent, limit, level in limits if percent >= limit), default=MemoryPressure.NORMAL)
