"""A Python app that PyInstaller froze runs the bundle beside it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from lmwire import child_process
from lmwire_protocol import __version__
from support.process.worker_process import SECONDS

APP = """
import json, sys
sys.frozen, sys.executable = True, sys.argv[1]
from lmwire import Worker, local_models
with Worker(start_timeout=float(sys.argv[2])) as worker:
    print(json.dumps([worker.hello.worker, [model.id for model in local_models()]]))
"""


@pytest.mark.nightly
def test_it_starts_the_bundles_worker_and_lists_models(bundle: Path, tmp_path: Path) -> None:
    """The program is found through a link, as installers make one."""
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "program").touch()
    (tmp_path / "app" / "lmwire").symlink_to(bundle)
    (tmp_path / "link").symlink_to(tmp_path / "app" / "program")
    done = subprocess.run(
        [sys.executable, "-c", APP, str(tmp_path / "link"), str(SECONDS)],
        env={"HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [f"lmwire {__version__}", ["builtin:tiny"]]


@pytest.mark.nightly
def test_without_a_bundle_the_error_names_its_place(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", APP, str(tmp_path / "program"), str(SECONDS)],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert f"cannot run '{tmp_path}/lmwire/lmwire'" in done.stderr
    assert "put the folder that `lmwire bundle` makes beside the app's program" in done.stderr


@pytest.mark.slow
def test_in_an_app_for_a_mac_it_may_be_among_the_resources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "Contents" / "Resources" / "lmwire" / "lmwire"
    program.parent.mkdir(parents=True)
    program.touch()
    monkeypatch.setattr(sys, "frozen", "macosx_app", raising=False)
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(sys, "executable", str(tmp_path / "Contents" / "MacOS" / "App"))
    assert child_process.python_program() == str(program)


def test_a_bundle_and_an_installed_python_run_their_own_modules(monkeypatch: pytest.MonkeyPatch) -> None:
    assert child_process.python_program() == sys.executable
    monkeypatch.setattr(sys, "frozen", child_process.BUNDLE, raising=False)
    assert child_process.python_program() == sys.executable
