"""`lmwire service`: the files for systemd and launchd, and the commands that it runs."""

import os
import plistlib
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from lmwire.cli.arguments import parse
from lmwire.cli.errors import CliError, run_and_report
from lmwire.cli.service import launchd, systemd
from support.process.worker_process import SECONDS

pytestmark = pytest.mark.slow

USAGE = 64
AWKWARD = ["/opt/my models/lmwire", "serve", "100%", "$HOME", 'a"b', "c\\d", "--api-key=k'1", ""]

Run = Callable[..., int]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home whose PATH has stand-ins of systemctl and launchctl. They write down how they are called."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("systemctl", "launchctl"):
        program = programs / name
        program.write_text(f'#!/bin/sh\necho {name} "$@" >> {tmp_path}/calls\n[ ! -e {tmp_path}/failing ]\n')
        program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    return tmp_path


@pytest.fixture(params=["linux", "darwin"])
def platform(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(sys, "platform", request.param)
    return request.param


def service(*argv: str) -> int:
    arguments = parse(["service", *argv])
    return run_and_report(arguments.run, arguments)


def calls(home: Path) -> list[str]:
    file = home / "calls"
    return file.read_text().splitlines() if file.exists() else []


def file_of(platform: str) -> Path:
    return systemd.unit_path() if platform == "linux" else launchd.agent_path()


def test_it_is_installed_asked_for_and_removed(home: Path, platform: str) -> None:
    assert service("install", "--", "--port", "8081", "ada/one") == 0
    file = file_of(platform)
    assert file.is_relative_to(home)
    assert file.stat().st_mode & 0o077 == 0
    text = file.read_text()
    assert "8081" in text and "ada/one" in text
    assert service("status") == 0
    assert service("remove") == 0
    assert not file.exists()
    domain = f"gui/{os.getuid()}"
    assert (
        calls(home)
        == {
            "linux": [
                "systemctl --user daemon-reload",
                "systemctl --user enable lmwire.service",
                "systemctl --user restart lmwire.service",
                "systemctl --user --no-pager status lmwire.service",
                "systemctl --user disable --now lmwire.service",
                "systemctl --user daemon-reload",
            ],
            "darwin": [
                f"launchctl bootout {domain}/{launchd.LABEL}",
                f"launchctl bootstrap {domain} {file}",
                f"launchctl print {domain}/{launchd.LABEL}",
                f"launchctl bootout {domain}/{launchd.LABEL}",
            ],
        }[platform]
    )


def test_a_dry_run_prints_the_file_and_changes_nothing(
    home: Path, platform: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert service("install", "--dry-run", "--", "--port", "8081") == 0
    assert f"# {file_of(platform)}\n" in capsys.readouterr().out
    assert not file_of(platform).exists()
    assert calls(home) == []


def test_wrong_options_of_the_server_are_refused_at_once(
    home: Path, platform: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as exit:
        service("install", "--", "--port", "many")
    assert exit.value.code == USAGE
    assert "--port: 'many'" in capsys.readouterr().err
    assert service("install", "--", "--stop-at-eof") == USAGE
    assert not file_of(platform).exists()


def test_a_manager_that_fails_or_is_missing_is_reported(
    home: Path, platform: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert service("remove") == 1
    assert "no service is installed" in capsys.readouterr().err
    (home / "failing").touch()
    assert service("install") == 1
    assert " failed: see the message above" in capsys.readouterr().err
    assert service("status") == 1
    monkeypatch.setenv("PATH", "/nowhere")
    assert service("status") == 1
    assert "is not on PATH: `lmwire service` needs" in capsys.readouterr().err


def test_systemd_reads_each_argument_back() -> None:
    (line,) = [line for line in systemd.unit_file(AWKWARD).decode().splitlines() if line.startswith("ExecStart=")]
    words = shlex.split(line.partition("=")[2])
    assert [word.replace("%%", "%").replace("$$", "$") for word in words] == AWKWARD
    with pytest.raises(CliError, match="control character"):
        systemd.unit_file(["lmwire", "serve", "a\nExecStartPre=/bin/false"])


def test_launchd_reads_each_argument_back() -> None:
    agent = plistlib.loads(launchd.agent_file(AWKWARD))
    assert agent["ProgramArguments"] == AWKWARD
    assert agent["Umask"] == 0o077


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_systemd_finds_no_fault_in_the_unit(tmp_path: Path) -> None:
    unit = tmp_path / systemd.UNIT
    unit.write_bytes(systemd.unit_file([sys.executable, *AWKWARD[1:]]))
    done = subprocess.run(
        ["systemd-analyze", "verify", "--user", "--man=no", str(unit)],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
        env=os.environ | {"XDG_RUNTIME_DIR": str(tmp_path)},
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_a_key_does_not_reach_who_has_the_former_file_open(home: Path, platform: str) -> None:
    file = file_of(platform)
    file.parent.mkdir(parents=True)
    file.write_text("readable by all")
    file.chmod(0o644)
    with file.open() as another_users:
        assert service("install", "--", "--api-key", "a-secret-key-of-32-characters-000") == 0
        assert another_users.read() == "readable by all"
    assert file.stat().st_mode & 0o777 == 0o600
    assert [each.name for each in file.parent.iterdir()] == [file.name]
