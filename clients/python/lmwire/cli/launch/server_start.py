"""The start of a server for an agent: its log and its load on stderr, and its end with this command."""

import contextlib
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator
from http.client import HTTPException
from typing import IO, Any, Final
from urllib.error import HTTPError

import msgspec

from ...child_process import child_environment, python_command
from ..errors import CliError
from ..local_servers import open_url
from ..progress import make_progress_area

ANSWER_TIMEOUT_S: Final = 30
"""Longest time for the server to answer a question about itself, in seconds.

A busy machine delays a healthy server by seconds; only a hung one takes this long.
"""
MOST_BYTES: Final = 16 * 2**20
"""Size of the longest answer that is read."""
_POLL_S: Final = 0.1
_STOP_TIMEOUT_S: Final = 40
"""Longest time for a started server to stop, in seconds. Its running requests have 30 s."""


class _LoadProgress(msgspec.Struct):
    """Progress of a load in the answer of /ready."""

    stage: str
    current: int
    unit: str
    total: int | None = None


class _Ready(msgspec.Struct):
    """The answer of /ready."""

    ready: bool = False
    load_progress: _LoadProgress | None = None


@contextlib.contextmanager
def start_server(model: str, api_key: str) -> Generator[str]:
    """Yield the address of a new server that has loaded the model. The server also stops if this process dies.

    Args:
        model: Name of the model.
        api_key: The key that the server wants: other users of this machine can reach its port.
    """
    options = ("--host", "127.0.0.1", "--port", "0", "--log-format", "text", "--preload", "--only", "--stop-at-eof")
    command = python_command("lmwire_http", *options, "--", model)
    print(f"lmwire: starting a server for {model}", file=sys.stderr)
    with (
        tempfile.NamedTemporaryFile("ab", prefix="lmwire-server-") as written,
        open(written.name, encoding="utf-8", errors="replace") as log,
        subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=written,
            env={**child_environment(), "LMWIRE_API_KEY": api_key},
            start_new_session=True,  # Ctrl-C in the agent must not stop the server
        ) as process,
    ):
        try:
            yield _wait_until_ready(process, log)
        finally:
            _stop(process)


def _wait_until_ready(process: "subprocess.Popen[bytes]", log: IO[str]) -> str:
    """Return the server's address once its model is loaded. Until then, show its log and the load on stderr."""
    lines: list[str] = []
    with _StartDisplay(log) as display:
        while process.poll() is None:
            lines += display.copy_log()
            if found := re.search(r"serves on (\S+)", "".join(lines)):
                state = _ask_readiness(found[1])
                if state.ready:
                    return found[1]
                display.show(state.load_progress)
            time.sleep(_POLL_S)
        display.copy_log()
    raise CliError("the server could not start; its log is above")


class _StartDisplay(contextlib.AbstractContextManager["_StartDisplay"]):
    """The log of a server that starts, on stderr, and on a terminal the bar of the load below it.

    Args:
        log: The log.
    """

    def __init__(self, log: IO[str]) -> None:
        self._log = log
        self._area = make_progress_area(sys.stderr)
        self._bar = self._area.begin() if self._area else None

    def __exit__(self, *_: object) -> None:
        if self._area:
            self._area.close()

    def copy_log(self) -> list[str]:
        """Show the log's new lines, without this command's own requests, and return them."""
        lines = [line for line in self._log if "path=/ready" not in line]
        if self._area is None:
            sys.stderr.writelines(lines)
        elif shown := "".join(line for line in lines if " info downloading " not in line):  # the bar shows it
            self._area.print_above(shown)
        return lines

    def show(self, load: _LoadProgress | None) -> None:
        """Show how far the load has come."""
        if self._bar and load:
            self._bar.show(load.stage, load.current, load.total, load.unit)


def _ask_readiness(url: str) -> _Ready:
    """Return whether a server can serve requests, and how far the load has come that it waits for."""
    with contextlib.suppress(OSError, HTTPException, msgspec.DecodeError):  # such as a server that is just ending
        try:
            with open_url(f"{url}/ready", timeout=ANSWER_TIMEOUT_S):
                return _Ready(ready=True)
        except HTTPError as error:
            return msgspec.json.decode(error.read(MOST_BYTES), type=_Ready)
    return _Ready()


def _stop(process: "subprocess.Popen[Any]") -> None:
    assert process.stdin
    process.stdin.close()
    try:
        process.wait(_STOP_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        process.kill()
