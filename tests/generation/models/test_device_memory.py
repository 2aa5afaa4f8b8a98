"""The memory budget of a device."""

import sys
from pathlib import Path

import mlx.core as mx
import psutil
import pytest

from lmwire_protocol import RequestError
from lmwire_worker.engine.interface import ModelInfo
from lmwire_worker.models import device_memory
from lmwire_worker.process.memory_pressure import MemoryPressure

GIB = 2**30


def test_mlx_gets_the_budget_and_the_memory_of_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    limits: list[int] = []
    monkeypatch.setattr(mx, "set_memory_limit", limits.append)
    device_memory.limit_mlx_memory(3 * GIB)
    assert limits == [3 * GIB + device_memory.STEP_BYTES]


@pytest.mark.parametrize(
    ("weights", "pressure", "wired"),
    [
        (4, MemoryPressure.NORMAL, 0),
        (6, MemoryPressure.NORMAL, 6 * GIB + device_memory.STEP_BYTES),
        (9, MemoryPressure.NORMAL, 9 * GIB),
        (30, MemoryPressure.NORMAL, 9 * GIB),
        (6, MemoryPressure.WARNING, 0),
        (6, MemoryPressure.CRITICAL, 0),
    ],
    ids=["small", "large", "with the reserve", "too large", "short of memory", "critically short"],
)
def test_on_metal_large_weights_are_wired_and_a_part_remains(
    weights: int, pressure: MemoryPressure, wired: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits: list[int] = []
    monkeypatch.setattr(mx, "set_memory_limit", lambda limit: None)
    monkeypatch.setattr(mx, "set_wired_limit", limits.append)
    monkeypatch.setattr(mx.metal, "is_available", lambda: True)
    monkeypatch.setattr(device_memory, "device_bytes", lambda: 10 * GIB)
    monkeypatch.setattr(device_memory, "read_pressure", lambda: pressure)
    device_memory.limit_mlx_memory(9 * GIB, weights * GIB)
    device_memory.limit_mlx_memory(9 * GIB)
    assert limits == [wired, 0], "a model without weights to wire ends the wiring of the last one"


def test_without_a_limit_the_budget_is_a_part_of_the_devices_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_memory, "device_bytes", lambda: 10 * GIB)
    assert device_memory.default_budget() == 9 * GIB


@pytest.mark.parametrize(
    ("info", "size"),
    [
        ({"memory_size": 16 * GIB, "max_recommended_working_set_size": 12 * GIB}, 12 * GIB),
        ({"total_memory": 80 * GIB, "free_memory": 70 * GIB}, 80 * GIB),
    ],
)
def test_the_device_memory_is_as_mlx_reports_it(
    info: dict[str, int], size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mx, "device_info", lambda: info)
    assert device_memory.device_bytes() == size


@pytest.mark.parametrize(("limit", "size"), [("1073741824\n", GIB), ("max\n", None)])
def test_a_control_group_may_allow_less_than_the_machine_has(
    limit: str, size: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mx, "device_info", lambda: {})
    monkeypatch.setattr(device_memory, "CONTROL_GROUP_LIMITS", ())
    machine = device_memory.device_bytes()
    (tmp_path / "max").write_text(limit)
    monkeypatch.setattr(device_memory, "CONTROL_GROUP_LIMITS", (str(tmp_path / "max"), str(tmp_path / "none")))
    assert device_memory.device_bytes() == (size or machine)


@pytest.fixture(params=[False, True], ids=["cpu", "metal"])
def unified(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the device one that shares the system's memory, of which 4096 bytes are free, and MLX uses 1200."""
    info = {"memory_size": 16 * GIB, "max_recommended_working_set_size": 12 * GIB} if request.param else {}
    monkeypatch.setattr(mx, "device_info", lambda: info)
    monkeypatch.setattr(mx.metal, "is_available", lambda: request.param)
    monkeypatch.setattr(mx, "get_active_memory", lambda: 1000)
    monkeypatch.setattr(mx, "get_cache_memory", lambda: 200)
    monkeypatch.setattr(device_memory, "available_system_bytes", lambda: 4096)


@pytest.mark.usefixtures("unified")
@pytest.mark.parametrize(
    ("pressure", "free"),
    [
        (MemoryPressure.NORMAL, 4096 + 1200),
        (MemoryPressure.WARNING, 4096 + 1200),
        (MemoryPressure.CRITICAL, 1200),
    ],
)
def test_memory_in_use_counts_as_free_but_not_under_pressure(
    pressure: MemoryPressure, free: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device_memory, "read_memory_pressure", lambda: pressure)
    assert device_memory.free_bytes() == free


@pytest.mark.usefixtures("unified")
def test_a_load_above_the_systems_free_memory_is_refused_with_the_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    model = ModelInfo("m", "llama", 100, 1, 1, 100, 5000, [])
    device_memory.check_fits(model, 200, GIB, device_memory.free_bytes())
    with pytest.raises(
        RequestError, match=r"for its weights and .* for a short answer, and .* of 1024.0 MiB are free;"
    ):
        device_memory.check_fits(model, 400, GIB, device_memory.free_bytes())
    monkeypatch.setattr(device_memory, "read_memory_pressure", lambda: MemoryPressure.CRITICAL)
    with pytest.raises(RequestError, match="are free, because the system is critically short of memory"):
        device_memory.check_fits(model, 200, GIB, device_memory.free_bytes())


@pytest.mark.skipif(sys.platform != "linux", reason="reads Linux's own figure")
def test_the_systems_free_memory_is_what_programs_can_get(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = Path("/proc/meminfo").read_text()
    (tmp_path / "meminfo").write_text(content)
    monkeypatch.setattr(psutil, "PROCFS_PATH", str(tmp_path))  # other programs change the figure at any time
    monkeypatch.setattr(device_memory, "SYSTEM_MEMORY", str(tmp_path / "meminfo"))
    meminfo = dict(line.split(":") for line in content.splitlines())
    assert device_memory.available_system_bytes() == int(meminfo["MemAvailable"].split()[0]) * 1024
    monkeypatch.setattr(device_memory, "SYSTEM_MEMORY", str(tmp_path / "missing"))
    assert device_memory.available_system_bytes() == psutil.virtual_memory().available


def test_a_cuda_device_reports_its_free_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_memory, "read_memory_pressure", lambda: MemoryPressure.CRITICAL)
    monkeypatch.setattr(mx, "device_info", lambda: {"free_memory": 5000})
    monkeypatch.setattr(mx, "get_active_memory", lambda: 1000)
    monkeypatch.setattr(mx, "get_cache_memory", lambda: 200)
    assert device_memory.free_bytes() == 6200


@pytest.mark.parametrize(
    ("error", "ran_out"),
    [
        (RuntimeError("[malloc] Unable to allocate 100 bytes."), True),
        (RuntimeError("[metal::malloc] Attempting to allocate 100 bytes"), True),
        (RuntimeError("cudaMallocAsync failed: out of memory"), True),
        (MemoryError(), True),
        (RuntimeError("[matmul] Shapes do not match"), False),
    ],
)
def test_an_allocation_failure_is_distinguished_from_others(error: Exception, ran_out: bool) -> None:
    assert device_memory.is_out_of_memory(error) == ran_out
