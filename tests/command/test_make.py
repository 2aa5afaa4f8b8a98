"""What a newcomer types first."""

import re
import subprocess

from lmwire_command import REPOSITORY
from worker_process import SECONDS


def make(*arguments: str) -> str:
    command = ["make", "--no-print-directory", *arguments]
    return subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=SECONDS, check=True).stdout


def test_make_alone_lists_every_target_and_what_it_does() -> None:
    listed = make()
    targets = re.findall(r"^([a-z]+):", (REPOSITORY / "Makefile").read_text(), flags=re.MULTILINE)
    assert {"help", "setup", "chat", "test", "lint", "format", "schema", "bench"} == set(targets)
    for target in targets:
        assert re.search(rf"^  make {target} +\w", listed, flags=re.MULTILINE)


def test_constraints_pin_versions_and_name_no_place() -> None:
    for line in (REPOSITORY / "constraints.txt").read_text().splitlines():
        assert re.fullmatch(r"[A-Za-z0-9._-]+==[0-9][A-Za-z0-9.]*", line)
