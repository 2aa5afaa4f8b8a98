"""Programs of real clients, run with a home of their own and no way to other machines."""

import json
import os
import socket
import subprocess
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest

from support.clients.installation import DEFINITIONS, node, node_packages, python_environment
from support.clients.relay import listening

CLIENT_S: Final = 240
"""Time limit of a client's program on a busy machine."""
PROGRAMS: Final = DEFINITIONS / "programs"
_NO_TELEMETRY: Final = {
    "ANONYMIZED_TELEMETRY": "False",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "DISABLE_AUTOUPDATER": "1",
    "DISABLE_TELEMETRY": "1",
    "DO_NOT_TRACK": "1",
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "OPENAI_AGENTS_DISABLE_TRACING": "1",
    "OPENCODE_DISABLE_AUTOUPDATE": "1",
    "OPENCODE_DISABLE_MODELS_FETCH": "1",
    "npm_config_offline": "true",  # opencode installs its plugins' package with npm
}


@dataclass
class Outside:
    """A proxy that refuses every connection to another machine.

    Args:
        proxy: Its URL.
        asked: First line of each connection.
    """

    proxy: str = ""
    asked: list[str] = field(default_factory=list[str])

    def handle(self, client: socket.socket) -> None:
        """Record what the client wants, and refuse it."""
        self.asked.append(client.recv(4096).decode("latin-1").partition("\r\n")[0])
        client.sendall(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")


@contextmanager
def no_outside() -> Generator[Outside]:
    """Yield a proxy that stands before every other machine."""
    outside = Outside()
    with listening(outside.handle) as port:
        outside.proxy = f"http://127.0.0.1:{port}"
        yield outside


def client_environment(home: Path, outside: Outside, **variables: str) -> dict[str, str]:
    """Return the whole environment of a client. Nothing of the tests' own is in it.

    Args:
        home: Home folder of the client.
        outside: What its connections to other machines reach.
        **variables: Further variables.
    """
    proxies = {f"{kind}_PROXY": outside.proxy for kind in ("HTTP", "HTTPS", "ALL")} | {
        "NO_PROXY": "127.0.0.1,localhost"
    }
    proxies |= {name.lower(): value for name, value in proxies.items()}
    path = os.pathsep.join((str(node()), os.environ["PATH"]))
    own = {"HOME": str(home), "PATH": path, "LANG": "C.UTF-8", "TERM": "dumb"}
    return own | proxies | _NO_TELEMETRY | variables


def run_client(
    command: Sequence[str | Path],
    environment: Mapping[str, str],
    cwd: Path,
    stdin: str = "",
    seconds: float = CLIENT_S,
) -> subprocess.CompletedProcess[str]:
    """Run a client's program to its end, and fail with its output if it fails.

    Args:
        command: The program and its arguments.
        environment: Its whole environment.
        cwd: Its working directory.
        stdin: Its input.
        seconds: Its time limit.
    """
    try:
        done = subprocess.run(
            command,
            input=stdin,
            cwd=cwd,
            env=environment,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired as late:
        pytest.fail(f"{command[0]} did not end: {late.stdout!r} {late.stderr!r}")
    if done.returncode:
        pytest.fail(f"{command[0]} exited with {done.returncode}:\n{done.stdout[-8000:]}\n{done.stderr[-8000:]}")
    return done


class Results:
    """Results of the functions of a client's program, by name.

    Args:
        output: The program's output: a JSON object on its last line.
    """

    def __init__(self, output: str) -> None:
        self._results = json.loads(output.strip().splitlines()[-1])

    def __getitem__(self, name: str) -> Any:
        result = self._results[name]
        if "error" in result:
            pytest.fail(result["error"], pytrace=False)
        return result["value"]


def run_python(program: str, environment: Mapping[str, str], *urls: str, libraries: str = "sdks") -> Results:
    """Run the functions of programs/PROGRAM.py.

    Args:
        program: Name of the program.
        environment: Its whole environment.
        *urls: Its arguments: URLs of servers.
        libraries: Name of the requirements that it needs.
    """
    command = [python_environment(libraries) / "python", PROGRAMS / f"{program}.py", *urls]
    return Results(run_client(command, environment, Path(environment["HOME"])).stdout)


def run_node(program: str, environment: Mapping[str, str], *urls: str) -> Results:
    """Run the functions of programs/PROGRAM.mjs with the packages of package-lock.json.

    Args:
        program: Name of the program.
        environment: Its whole environment.
        *urls: Its arguments: URLs of servers.
    """
    # Node looks for packages beside a program's file, and beside the working directory for a program on stdin.
    cases = (PROGRAMS / "cases.mjs").as_uri()
    command = [node() / "node", "--import", cases, "--input-type=module", "-", *urls]
    source = (PROGRAMS / f"{program}.mjs").read_text()
    return Results(run_client(command, environment, node_packages(), source).stdout)
