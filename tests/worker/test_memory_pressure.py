"""The system's memory pressure: how it is read, and what the scheduler does about it."""

import ctypes
import sys
from pathlib import Path
from typing import Any

import pytest

from lmwire_worker.process import memory_pressure
from lmwire_worker.process.memory_pressure import MemoryPressure, read_memory_pressure
from support.runners.stepped_turns import Turns

NORMAL, WARNING, CRITICAL = MemoryPressure


def stalls(some: float, full: float) -> str:
    return (
        f"some avg10={some:.2f} avg60=99.00 avg300=99.00 total=3936646\n"
        f"full avg10={full:.2f} avg60=99.00 avg300=99.00 total=1187068\n"
    )


@pytest.mark.parametrize(
    ("text", "level"),
    [
        (stalls(0, 0), NORMAL),
        (stalls(9.99, 9.99), NORMAL),
        (stalls(10, 0), WARNING),
        (stalls(100, 19.99), WARNING),
        (stalls(20, 20), CRITICAL),
        ("", NORMAL),
        ("some avg10=much", NORMAL),
    ],
)
def test_linux_reports_the_share_of_time_that_processes_wait_for_memory(
    text: str, level: MemoryPressure, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    (tmp_path / "memory").write_text(text)
    (tmp_path / "calm").write_text(stalls(0, 0))
    for others in ("calm", "none"):
        monkeypatch.setattr(memory_pressure, "PRESSURE_FILES", (str(tmp_path / others), str(tmp_path / "memory")))
        assert read_memory_pressure() is level


@pytest.mark.parametrize(
    ("value", "status", "level"),
    [(1, 0, NORMAL), (2, 0, WARNING), (4, 0, CRITICAL), (0, 0, NORMAL), (4, -1, NORMAL)],
)
def test_macos_reports_a_level(value: int, status: int, level: MemoryPressure, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fake of macOS's C library."""

    class Library:
        def sysctlbyname(self, name: bytes, old: Any, size: Any, new: None, new_size: int) -> int:
            assert (name, new, new_size) == (b"kern.memorystatus_vm_pressure_level", None, 0)
            assert ctypes.cast(size, ctypes.POINTER(ctypes.c_size_t)).contents.value == 4
            ctypes.cast(old, ctypes.POINTER(ctypes.c_int)).contents.value = value
            return status

    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(ctypes, "CDLL", lambda name: Library())
    assert read_memory_pressure() is level


def press(turns: Turns, level: MemoryPressure) -> None:
    turns.worker.scheduler.pressure.update(level)


def test_an_idle_worker_frees_its_caches_when_the_pressure_rises(turns: Turns) -> None:
    press(turns, WARNING)
    turns.step()
    assert turns.started == ["released caches"]
    assert turns.worker.engine == "idle"


def test_under_a_warning_caches_are_freed_once_and_requests_start(turns: Turns) -> None:
    turns.generate("a")
    turns.step()
    press(turns, WARNING)
    press(turns, WARNING)
    turns.generate("b")
    turns.step()
    turns.step()
    assert turns.started == ["a", "released caches", "b"]


def test_under_critical_pressure_requests_run_one_after_the_other(turns: Turns) -> None:
    turns.generate("a")
    turns.step()
    press(turns, CRITICAL)
    turns.generate("b", "c")
    turns.step()
    turns.step()
    assert turns.started == ["a", "released caches"] and turns.counts() == (1, 2)
    turns.step("all")
    assert turns.started == ["a", "released caches", "b"] and turns.counts() == (1, 1)
    press(turns, CRITICAL)
    turns.step()
    assert turns.started == ["a", "released caches", "b", "released caches"]


def test_when_the_pressure_falls_waiting_requests_start(turns: Turns) -> None:
    press(turns, CRITICAL)
    turns.step()
    turns.generate("a", "b")
    turns.step()
    turns.step()
    assert turns.started == ["released caches", "a"]
    press(turns, NORMAL)
    turns.step()
    assert turns.started == ["released caches", "a", "b"]
