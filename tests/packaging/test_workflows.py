"""The workflows run what .ci/run runs, and a tag publishes only what was checked and is in the changelog."""

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from support.process.lmwire_command import REPOSITORY
from support.process.worker_process import SECONDS

CI_RUN = REPOSITORY / ".ci/run"
WORKFLOWS = REPOSITORY / ".github/workflows"
CHECK: Any = yaml.safe_load((WORKFLOWS / "check.yml").read_text())
NIGHTLY: Any = yaml.safe_load((WORKFLOWS / "nightly.yml").read_text())
RELEASE: Any = yaml.safe_load((WORKFLOWS / "release.yml").read_text())
OF_WORKFLOWS = {"go", "node", "npm"}
"""Programs that the workflows set up in a newer version than Debian has."""


def commands(job: Any) -> list[str]:
    return [step["run"] for step in job["steps"] if "run" in step]


def ci_run(folder: Path, *programs: str, target: Sequence[str] = (), **environment: str) -> list[str]:
    """Return what .ci/run calls on a machine that has only some programs."""
    calls = folder / "calls"
    for name in ("apt-get", "make", "sudo", *programs):
        (folder / name).write_text(f'#!/bin/sh\necho "{name} $*" >>{calls}\n')
        (folder / name).chmod(0o755)
    (folder / "id").write_text("#!/bin/sh\necho ${USER_ID:-0}\n")
    (folder / "id").chmod(0o755)
    (folder / "dirname").symlink_to(shutil.which("dirname") or "/usr/bin/dirname")
    command = [shutil.which("bash") or "/bin/bash", str(CI_RUN), *target]
    subprocess.run(command, env={"PATH": str(folder), **environment}, check=True, timeout=SECONDS)
    return calls.read_text().splitlines()


def listed_programs(installer: str) -> list[str]:
    """Return the programs that .ci/run installs with a package manager."""
    branch = CI_RUN.read_text().partition(f"command -v {installer} ")[2]
    (listed, *_) = re.findall(r"\(missing (.*)\)", branch)
    return [each.partition(":")[0] for each in listed.split()]


def test_the_workflow_tests_with_the_programs_of_the_ci_on_each_system() -> None:
    for system in ("linux", "macos"):
        assert commands(CHECK["jobs"][system])[-1] == '.ci/run "$TARGET"'
    text = (WORKFLOWS / "check.yml").read_text()
    assert not re.search(r"apt-get|brew|make test", text)
    assert CHECK["env"]["CI"] == "true"


def test_the_ci_has_each_program_that_a_test_asks_for() -> None:
    tests = [path.read_text() for path in (REPOSITORY / "tests").rglob("*.py") if path != Path(__file__)]
    asked = {name for text in tests for name in re.findall(r'\bprogram\("([^"]+)"\)', text)}
    assert {"fish", "nginx", "ruby", "zsh"} <= asked
    assert asked - OF_WORKFLOWS <= set(listed_programs("apt-get"))


@pytest.mark.slow
def test_the_ci_installs_what_is_missing_and_runs_the_tests(tmp_path: Path) -> None:
    update, install, make = ci_run(tmp_path, "fish", "nvim")
    assert update == "apt-get update -qq"
    packages = install.split()[5:]
    assert {"lua-check", "ruby", "zsh"} <= set(packages)
    assert not {"fish", "neovim"} & set(packages)
    assert make == "make test"


@pytest.mark.slow
def test_the_ci_installs_nothing_where_nothing_is_missing(tmp_path: Path) -> None:
    assert ci_run(tmp_path, *listed_programs("apt-get")) == ["make test"]


@pytest.mark.slow
def test_the_ci_runs_another_target_if_it_is_named(tmp_path: Path) -> None:
    assert ci_run(tmp_path, *listed_programs("apt-get"), target=["test-all"]) == ["make test-all"]


def test_everything_runs_at_night_and_before_a_release() -> None:
    assert "schedule" in NIGHTLY[True]  # YAML reads the key `on` so
    for job in (NIGHTLY["jobs"]["all"], RELEASE["jobs"]["check"]):
        assert job["uses"] == "./.github/workflows/check.yml"
        assert job["with"] == {"target": "test-all"}
    assert CHECK["env"]["TARGET"] == "${{ inputs.target || 'test' }}"


@pytest.mark.slow
def test_the_ci_leaves_a_developers_machine_as_it_is(tmp_path: Path) -> None:
    assert ci_run(tmp_path, USER_ID="1000") == ["make test"]


@pytest.mark.slow
def test_a_workflow_without_roots_rights_installs_with_sudo(tmp_path: Path) -> None:
    update, install, _ = ci_run(tmp_path, USER_ID="1000", CI="true")
    assert update.startswith("sudo ") and update.endswith(" apt-get update -qq")
    assert install.startswith("sudo ") and " apt-get install " in install


@pytest.mark.slow
@pytest.mark.parametrize(
    ("tag", "version", "heading", "accepted"),
    [
        ("v1.2.3", "1.2.3", "## [1.2.3] - 2026-01-31", True),
        ("v1.2.4", "1.2.3", "## [1.2.4] - 2026-01-31", False),
        ("v1.2.3", "1.2.3", "## [Unreleased]\n\nTo be 1.2.3", False),
        ("v1.2.3", "1.2.3", "## [1.2.3]", False),
    ],
)
def test_a_tag_needs_its_version_and_a_dated_section_of_the_changelog(
    tmp_path: Path, tag: str, version: str, heading: str, accepted: bool
) -> None:
    package = tmp_path / "protocol/lmwire_protocol"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(f'"""The protocol."""\n\n__version__ = "{version}"\n')
    (tmp_path / "CHANGELOG.md").write_text(f"# Changelog\n\n{heading}\n")
    ran = [
        subprocess.run(
            ["bash", "-e", "-c", command], cwd=tmp_path, env=os.environ | {"GITHUB_REF_NAME": tag}, check=False
        )
        for command in commands(RELEASE["jobs"]["version"])
    ]
    assert (len(ran), all(done.returncode == 0 for done in ran)) == (2, accepted)


def test_the_version_is_where_the_release_looks_for_it() -> None:
    source = (REPOSITORY / "protocol/lmwire_protocol/__init__.py").read_text()
    assert re.search(r'^__version__ = "[\d.]+"$', source, flags=re.MULTILINE)


def test_the_release_publishes_the_wheel_that_was_checked() -> None:
    jobs = RELEASE["jobs"]
    assert (jobs["check"]["uses"], jobs["check"]["needs"]) == ("./.github/workflows/check.yml", "version")
    assert (jobs["publish"]["needs"], jobs["github"]["needs"]) == ("check", "publish")
    assert "workflow_call" in CHECK[True]  # YAML 1.1 reads `on` as a boolean
    (uploaded,) = [step["with"] for step in CHECK["jobs"]["wheel"]["steps"] if "upload" in step.get("uses", "")]
    for job in ("publish", "github"):
        (downloaded,) = [step["with"] for step in jobs[job]["steps"] if "download" in step.get("uses", "")]
        assert downloaded == uploaded
