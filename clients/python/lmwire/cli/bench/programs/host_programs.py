"""The programs that measure a client each, built from this checkout where their tools are installed."""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from ...errors import CliError

_CHECKOUT: Final = Path(__file__).parents[6]
PYTHON: Final = [sys.executable, str(Path(__file__).with_name("bench_host.py"))]
"""The command that measures the Python client."""


class HostProgram(NamedTuple):
    """The program of a client in another language."""

    language: str
    folder: str
    """The client's folder in a checkout."""
    builds: Sequence[Sequence[str]]
    """The commands that build it, in that folder. They take a moment if nothing has changed."""
    command: Sequence[str]
    target: float
    """Lowest ratio of its events a second to the Python client's."""

    def build(self) -> str | None:
        """Build the program, and return why that is impossible, or None."""
        folder = _CHECKOUT / self.folder
        if not folder.is_dir():
            return "this installation has no sources of it; run the command in a checkout"
        print(f"building the program in {self.language}", file=sys.stderr)
        for build in self.builds:
            if not shutil.which(build[0]):
                return f"{build[0]} is not installed"
            environment = {**os.environ, "CARGO_TARGET_DIR": str(_CHECKOUT / ".cache/rust")}
            if subprocess.run(build, check=False, cwd=folder, env=environment, stdout=2).returncode:
                return f"`{' '.join(build)}` fails in {self.folder}"
        return None


HOSTS: Final = (
    HostProgram(
        "C",
        "clients/c",
        [
            ["mkdir", "-p", str(_CHECKOUT / ".cache/c")],
            ["cc", "-O2", "-I.", "-o", str(_CHECKOUT / ".cache/c/bench"), "test/bench_host.c", "lmwire.c"],
        ],
        [str(_CHECKOUT / ".cache/c/bench")],
        target=2.0,
    ),
    HostProgram(
        "Go",
        "clients/go",
        [["go", "build", "-o", str(_CHECKOUT / ".cache/go/bench"), "./internal/bench"]],
        [str(_CHECKOUT / ".cache/go/bench")],
        target=2.0,
    ),
    HostProgram(
        "Rust",
        "clients/rust",
        [["cargo", "build", "--quiet", "--release", "--example", "bench_host"]],
        [str(_CHECKOUT / ".cache/rust/release/examples/bench_host")],
        target=2.0,
    ),
    HostProgram(
        "Node",
        "clients/node",
        [["npm", "ci", "--silent"], ["npm", "run", "--silent", "build"]],
        ["node", str(_CHECKOUT / "clients/node/dist/test/bench-host.js")],
        target=1.0,
    ),
)


def built_hosts() -> list[HostProgram]:
    """Build the programs, and return those that can be measured. Print why others cannot.

    Raises:
        CliError: None of them can be built.
    """
    built: list[HostProgram] = []
    for host in HOSTS:
        if problem := host.build():
            print(f"the client in {host.language} is not measured: {problem}", file=sys.stderr)
        else:
            built.append(host)
    if not built:
        raise CliError("no client can be measured; the lines above say why")
    return built
