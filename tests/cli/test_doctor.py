"""`lmwire doctor`: each check finds what is wrong and says how to mend it."""

import json
import shutil
import socket
from pathlib import Path

import pytest
from huggingface_hub import constants

from lmwire import DeviceMemory, LmwireError
from lmwire.cli import arguments, doctor
from lmwire.cli.doctor import installation, machine
from lmwire.cli.doctor.installation import Finding
from lmwire_protocol.extras import WORKER_EXTRA
from support.http.ports import unused_port
from support.models.templated_model import write_templated_model


@pytest.mark.slow
def test_it_finds_this_machine_able_and_says_so_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert doctor.run(arguments.parse(["doctor", "--offline", "--json"])) == 0
    found = {finding["topic"]: finding for finding in json.loads(capsys.readouterr().out)}
    assert set(found) >= {"Python", "[worker]", "config file", "environment", "disk", "temporary", "port", "device"}
    assert "mlx-lm" in found["[worker]"]["text"]
    assert "builtin:tiny" in found["models"]["text"]
    assert {finding["level"] for finding in found.values()} <= {"ok", "warn"}


def test_a_failure_sets_the_exit_code_and_shows_its_fix(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(doctor, "check", lambda models, offline: [Finding("fail", "disk", "full", "empty it")])
    assert doctor.run(arguments.parse(["doctor"])) == 1
    assert capsys.readouterr().out.split() == ["fail", "disk", "full", "empty", "it"]


def test_a_package_outside_its_range_is_a_failure_of_the_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    real = installation.installed_version
    monkeypatch.setattr(installation, "installed_version", lambda name: "0.1" if name == "mlx-lm" else real(name))
    (worker,) = [finding for finding in installation.check_packages() if finding.topic == "[worker]"]
    assert (worker.level, worker.fix) == ("fail", f"pip install 'lmwire[{WORKER_EXTRA}]'")
    assert worker.text.startswith("mlx-lm 0.1 is not in ")


def test_an_extra_that_is_not_installed_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installation, "installed_version", lambda name: None if name == "rich" else "99.0")
    (chat,) = [finding for finding in installation.check_packages() if finding.topic == "[chat]"]
    assert (chat.level, chat.text) == ("warn", "not installed: rich")


@pytest.mark.slow
def test_a_given_models_format_of_tool_calls_is_named(tmp_path: Path) -> None:
    call = "<do>{{ call.function.name }}<with>{{ call.function.arguments | tojson }}</do>"
    turn = "<|{{ m.role }}|>{{ m.content or '' }}{% for call in m.tool_calls or [] %}CALL{% endfor %}"
    own = f"{{% for m in messages %}}{turn.replace('CALL', call)}{{% endfor %}}<|assistant|>"
    folders = [str(write_templated_model(tmp_path / name, template)) for name, template in (("a", None), ("b", own))]
    known, *others, gone = machine.check_tool_calls(["builtin:tiny", *folders, "gone"])
    assert (known.level, known.text, known.fix) == ("ok", "builtin:tiny writes json_tools", None)
    assert ["describe json_tools" in others[0].text, "start with <do>" in others[1].text] == [True, True]
    assert all(finding.level == "warn" and finding.fix and "--tool-format" in finding.fix for finding in others)
    assert gone.text == "gone: no model of this name on this machine calls tools" and gone.fix


@pytest.mark.parametrize(
    ("package", "extra", "named"),
    [
        ("psutil", "worker", WORKER_EXTRA),
        ("rich", "chat", "chat"),
        ("uvicorn", "http", "http"),
        ("mlx-vlm", "vision", "vision"),
    ],
)
def test_a_missing_package_is_one_finding_with_one_fix(
    package: str, extra: str, named: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = installation.installed_version
    monkeypatch.setattr(installation, "installed_version", lambda name: None if name == package else real(name))
    found = [finding for finding in installation.check_packages() if finding.level != "ok"]
    assert [(each.topic, each.text) for each in found] == [(f"[{extra}]", f"not installed: {package}")]
    assert found[0].fix and found[0].fix.endswith(f"'lmwire[{named}]'")


def test_the_slow_blas_of_linuxs_cpu_package_is_a_warning_with_its_cure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine.sys, "platform", "linux")
    cpu, gpu = (DeviceMemory(budget_bytes=1, free_bytes=1, device=device) for device in ("CPU, 4 cores", "NVIDIA H100"))
    [found] = machine.check_blas(cpu, {})
    assert (found.level, found.topic) == ("warn", "BLAS")
    assert found.fix and "LD_PRELOAD=libopenblas.so.0" in found.fix
    assert list(machine.check_blas(cpu, {"LD_PRELOAD": "/usr/lib/libopenblas.so.0"})) == []
    assert list(machine.check_blas(gpu, {})) == []
    monkeypatch.setattr(machine.sys, "platform", "darwin")
    assert list(machine.check_blas(cpu, {})) == []


def test_a_device_that_lacks_the_missing_packages_is_no_second_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    device = Finding("fail", "device", "no mlx", "install it")
    monkeypatch.setattr(doctor, "check_device", lambda: (None, device))
    monkeypatch.setattr(doctor, "check_temporary_files", lambda: Finding("ok", "temporary", "yours"))
    for packages in (Finding("fail", "packages", "not installed"), Finding("warn", "packages", "not installed")):
        monkeypatch.setattr(doctor, "check_packages", lambda found=packages: iter([found]))
        assert (device in doctor.check([], offline=True)) == (packages.level == "warn")


def test_an_nvidia_gpu_decides_which_libraries_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installation, "NVIDIA_DRIVER", tmp_path)
    assert installation.device_extra() == "cuda"


def test_a_broken_config_file_is_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "config.toml").write_text("[serve")
    (tmp_path / "config.toml").chmod(0o600)
    monkeypatch.setenv("LMWIRE_CONFIG", str(tmp_path / "config.toml"))
    assert installation.check_config().level == "fail"


def test_a_relative_search_path_is_a_warning_and_secrets_are_hidden() -> None:
    shown, warned = installation.check_environment({"PYTHONPATH": "/a::/b", "HF_TOKEN": "hf_secret", "HF_HOME": "/c"})
    assert shown.text == "HF_HOME=/c, HF_TOKEN=(hidden)"
    assert (warned.level, warned.fix) == ("warn", "write only absolute paths in PYTHONPATH")


def test_a_device_that_cannot_be_used_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> DeviceMemory:
        raise LmwireError("MLX cannot be imported:\nno libmlx.so")

    monkeypatch.setattr(machine, "device_memory", fail)
    memory, finding = machine.check_device()
    assert (memory, finding.level, finding.text) == (None, "fail", "MLX cannot be imported: no libmlx.so")
    assert finding.fix and finding.fix.startswith("pip install 'lmwire[")


@pytest.mark.slow
def test_a_model_that_is_too_large_for_the_machine_is_named() -> None:
    fits, too_large, *_ = machine.check_models(DeviceMemory(budget_bytes=1, free_bytes=1, device="CPU"))
    assert fits.text.endswith("fit into the free memory: none")
    assert (too_large.level, "builtin:tiny" in too_large.text) == ("warn", True)


def test_a_full_disk_and_a_cache_that_cannot_be_written_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(machine, "_LOW_DISK_BYTES", shutil.disk_usage(tmp_path).total + 1)
    assert [finding.level for finding in machine.check_disk()] == ["warn"]
    monkeypatch.setattr(machine.os, "access", lambda *_: False)
    assert [finding.level for finding in machine.check_disk()] == ["fail"]


def test_the_hub_is_not_asked_offline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    assert machine.check_hub(offline=True).level == "ok"
    assert machine.check_hub(offline=False).level == "warn"


@pytest.mark.slow
def test_a_directory_for_temporary_files_that_others_can_change_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    tmp_path.chmod(0o777)
    assert machine.check_temporary_files().level == "warn"
    tmp_path.chmod(0o700)
    assert machine.check_temporary_files().level == "ok"


def test_a_port_in_use_is_found() -> None:
    port = unused_port()
    assert machine.check_port(port).level == "ok"
    with socket.create_server(("127.0.0.1", port)):
        assert machine.check_port(port).level == "warn"
