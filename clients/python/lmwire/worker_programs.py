"""Short programs of the worker's package, each run in a process of its own."""

import subprocess
from collections.abc import Sequence

from .child_process import child_environment
from .errors import LmwireError

_running: set["subprocess.Popen[bytes]"] = set()


def run_program(command: Sequence[str], timeout: float, problem: str) -> tuple[bytes, str]:
    """Run a program, and return its stdout and its stderr.

    Args:
        command: The program and its arguments.
        timeout: Seconds after which it is killed.
        problem: The beginning of an error's sentence.

    Raises:
        LmwireError: The program failed, or was killed.
    """
    pipe, nothing = subprocess.PIPE, subprocess.DEVNULL
    environment = child_environment()
    with subprocess.Popen(command, stdin=nothing, stdout=pipe, stderr=pipe, env=environment) as process:
        _running.add(process)
        try:
            output, errors = process.communicate(timeout=timeout)
        except BaseException as error:
            process.kill()
            if isinstance(error, subprocess.TimeoutExpired):
                raise LmwireError(f"{problem} in {timeout:.0f} s") from None
            raise
        finally:
            _running.discard(process)
    text = errors.decode(errors="replace")
    if process.returncode:
        raise LmwireError(f"{problem}: {text}")
    return output, text


def kill_programs() -> None:
    """Kill the running programs of this process. Their callers get an error."""
    for process in list(_running):
        process.kill()
