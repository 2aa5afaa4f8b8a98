"""The `lmwire` command as people run it: through pipes, on a terminal, or in the test's process if it only prints."""

import codecs
import fcntl
import io
import os
import re
import select
import struct
import subprocess
import sys
import sysconfig
import tempfile
import termios
import time
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Self

import pytest

from lmwire.cli import main
from support.process.worker_process import SECONDS

LMWIRE = str(Path(sysconfig.get_path("scripts")) / "lmwire")
MOCK_WORKER = f"{LMWIRE} worker --mock"
"""Value of `lmwire chat --worker` that starts a mock worker."""
FAKE_WORKER = f"{sys.executable} {Path(__file__).with_name('fake_worker.py')}"
"""Start of a value of `--worker`; the name of a fake worker follows."""
REPOSITORY = Path(__file__).parents[3]

_CONTROL_SEQUENCES = re.compile(r"\x1b(\[[0-9;?]*[ -/]*[@-~]|[@-Z\\-_])")
"""Whole sequences. A read can end within one, which the next read completes."""
# A session leader gets its terminal only by asking for it. SIGINT gets its default action, so that Ctrl-C works: a
# shell makes the programs that it runs in the background, and their children, ignore that signal.
_ON_TERMINAL = """
import fcntl, os, signal, sys, termios
signal.signal(signal.SIGINT, signal.SIG_DFL)
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.argv[1], sys.argv[1:])
"""


def lmwire(
    *arguments: str, stdin: str = "", seconds: float = SECONDS, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run the command through pipes to its end, which must come within some seconds."""
    return subprocess.run(
        [LMWIRE, *arguments],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
        env=_environment(environment),
    )


def lmwire_here(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a command that only prints in this process, to its end."""
    assert arguments[:1] not in [("worker",), ("mock",)], "it changes its process"
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patched, redirect_stdout(out), redirect_stderr(err):
        patched.setattr(sys, "argv", ["lmwire", *arguments])
        patched.setattr(os, "environ", _environment({"COLUMNS": "80", **environment}))
        try:
            code = main()
        except SystemExit as exit:
            code = exit.code if isinstance(exit.code, int) else 1
    return subprocess.CompletedProcess(arguments, code, out.getvalue(), err.getvalue())


class Terminal:
    """The command on a terminal of 100 by 30 characters. Leaving the context kills it if it still runs."""

    def __init__(self, *arguments: str, **environment: str) -> None:
        self._master, slave = os.openpty()
        self._state = tempfile.TemporaryDirectory()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("4H", 30, 100, 0, 0))
        self._process = subprocess.Popen(
            [sys.executable, "-c", _ON_TERMINAL, LMWIRE, *arguments],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            env=_environment(
                {
                    "TERM": "xterm-256color",
                    "PROMPT_TOOLKIT_NO_CPR": "1",
                    "XDG_STATE_HOME": self._state.name,
                    **environment,
                }
            ),
        )
        os.close(slave)
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._unread = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait(SECONDS)
        os.close(self._master)
        self._state.cleanup()

    def type(self, keys: str) -> None:
        r"""Type keys. `\r` is Enter, `\x03` Ctrl-C, `\x04` Ctrl-D."""
        os.write(self._master, keys.encode())

    def read_until(self, text: str) -> str:
        """Return the output up to and including `text`, without control sequences. Keep the rest for the next call."""
        deadline = time.monotonic() + SECONDS
        while text not in self._unread:
            ready, _, _ = select.select([self._master], [], [], max(0, deadline - time.monotonic()))
            if not ready:
                raise TimeoutError(f"no {text!r} on the terminal, only {self._unread!r}")
            if not (more := self._read()):
                raise EOFError(f"no {text!r} before the end of the output, only {self._unread!r}")
            self._unread = _CONTROL_SEQUENCES.sub("", self._unread + more)
        shown, _, self._unread = self._unread.partition(text)
        return shown + text

    def wait(self) -> int:
        """Wait for the command to exit, and return its exit code."""
        deadline = time.monotonic() + SECONDS
        while select.select([self._master], [], [], max(0, deadline - time.monotonic()))[0] and self._read():
            pass
        return self._process.wait(SECONDS)

    def _read(self) -> str:
        """Return the next output; empty at its end. A read can end within a character, which the next one completes."""
        try:
            while data := os.read(self._master, 65536):
                if text := self._decoder.decode(data):
                    return text
        except OSError:  # Linux raises it once no process has the terminal open
            pass
        return ""


def _environment(changes: dict[str, str]) -> dict[str, str]:
    """Return the tests' environment with changes, and without variables that affect the command or its looks."""
    own = ("LMWIRE_MODEL", "NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES", "TTY_COMPATIBLE", "TTY_INTERACTIVE")
    return {name: value for name, value in os.environ.items() if name not in own} | {"HF_HUB_OFFLINE": "1"} | changes
