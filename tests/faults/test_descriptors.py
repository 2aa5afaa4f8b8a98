"""Whatever a host hands over as stdin, stdout and stderr: files, sockets, terminals, or nothing at all."""

import json
import os
import pty
import select
import socket
import subprocess
import sys
import termios
import tty
from pathlib import Path

import pytest

from random_model import write_model
from support.process.process_waits import GONE_SECONDS
from support.process.worker_process import SECONDS, TERMINALS, Event

pytestmark = pytest.mark.slow

MOCK = [sys.executable, "-P", "-m", "lmwire_worker", "--mock"]
REAL = [sys.executable, "-P", "-m", "lmwire_worker"]
FULL = Path("/dev/full").exists()  # takes nothing; Linux has it


def lines(*commands: Event) -> bytes:
    return b"".join(json.dumps(command).encode() + b"\n" for command in commands)


def conversation(model: object = "mock") -> bytes:
    return lines(
        {"id": "h", "cmd": "hello", "client": "a test"},
        {"id": "l", "cmd": "load", "path": str(model)},
        {"id": "g", "cmd": "generate", "prompt": "a b c", "max_tokens": 3},
        {"id": "q", "cmd": "quit", "drain": True},
    )


def ended(output: bytes) -> list[str]:
    """The ids of a conversation's terminals, none of which may be an error."""
    events = [json.loads(line) for line in output.split(b"\n") if line.strip()]
    assert all(event["event"] != "error" for event in events), events
    return [event["id"] for event in events if event["event"] in TERMINALS]


def redirected(how: str, command: list[str] = MOCK, model: object = "mock") -> subprocess.CompletedProcess[bytes]:
    """The conversation with a worker whose descriptors a shell has changed."""
    shell = ["sh", "-c", f'exec "$@" {how}', "sh", *command]
    return subprocess.run(shell, input=conversation(model), capture_output=True, timeout=SECONDS, check=False)


@pytest.mark.parametrize("how", ["2>&-", "2>/dev/null", "2</dev/null", *(["2>/dev/full"] if FULL else [])])
def test_a_stderr_that_nobody_reads_harms_nothing(how: str) -> None:
    run = redirected(how)
    assert run.returncode == 0
    assert ended(run.stdout) == ["h", "l", "g", "q"]


@pytest.mark.parametrize("how", ["1>&-", "0<&- 1>&- 2>&-", "1</dev/null", *(["1>/dev/full"] if FULL else [])])
def test_a_stdout_that_cannot_be_written_is_a_host_that_is_gone(how: str) -> None:
    run = redirected(how)
    assert run.returncode == 74
    assert b"Traceback" not in run.stderr


@pytest.mark.parametrize("how", ["0<&-", "0</dev/null", "0>/dev/null", "0<&- 2>&-"])
def test_a_stdin_that_has_nothing_to_read_is_the_end_of_input(how: str) -> None:
    run = redirected(how)
    assert (run.returncode, run.stdout, run.stderr) == (0, b"", b"")


def test_a_real_engine_reads_a_file_and_writes_a_file_with_its_stderr_closed(tmp_path: Path) -> None:
    model = write_model(tmp_path / "model", end_scale=0)
    (tmp_path / "in").write_bytes(conversation(model))
    run = redirected(f"<'{tmp_path}/in' >'{tmp_path}/out' 2>&-", REAL, model)
    assert run.returncode == 0
    assert ended((tmp_path / "out").read_bytes()) == ["h", "l", "g", "q"]


def read_until(fd: int, end: bytes) -> bytes:
    """Read until `end` has arrived, and with it the rest of its line, which a full pipe may have cut."""
    output = b""
    while not (end in output and output.endswith(b"\n")):
        ready, _, _ = select.select([fd], [], [], SECONDS)
        assert ready, output
        output += os.read(fd, 65536)
    return output


def test_one_socket_for_both_ways_works_and_its_close_ends_the_worker() -> None:
    here, there = socket.socketpair()
    with here, subprocess.Popen(MOCK, stdin=there.fileno(), stdout=there.fileno()) as worker:
        there.close()
        here.sendall(conversation().rsplit(b"\n", 2)[0] + b"\n")
        assert ended(read_until(here.fileno(), b'"finish_reason"')) == ["h", "l", "g"]
        here.sendall(lines({"id": "p", "cmd": "ping"}))
        select.select([here], [], [], SECONDS)
        here.close()  # with a line that was not read, which resets the connection
        assert worker.wait(GONE_SECONDS) in (0, 74), "its input ended, and so did its host"


def test_the_write_end_of_a_socket_can_be_closed_alone() -> None:
    here, there = socket.socketpair()
    with here, subprocess.Popen(MOCK, stdin=there.fileno(), stdout=there.fileno()) as worker:
        there.close()
        here.sendall(lines({"id": "l", "cmd": "load", "path": "mock"}, {"id": "g", "cmd": "generate", "prompt": "a"}))
        here.shutdown(socket.SHUT_WR)
        assert ended(read_until(here.fileno(), b'"finish_reason"')) == ["l", "g"]
        assert worker.wait(SECONDS) == 0


def non_blocking_pipe(mine: int) -> tuple[int, int]:
    """A pipe whose other end than `mine` (0 or 1) is non-blocking."""
    ends = os.pipe()
    os.set_blocking(ends[1 - mine], False)
    return ends


def test_non_blocking_descriptors_lose_nothing_in_either_direction() -> None:
    (stdin, to_worker), (from_worker, stdout) = non_blocking_pipe(1), non_blocking_pipe(0)
    with subprocess.Popen(MOCK, stdin=stdin, stdout=stdout, stderr=stdout) as worker:
        os.close(stdin)
        os.close(stdout)
        prompt = "".join(f"word{i} " for i in range(20_000))
        os.write(to_worker, lines({"id": "l", "cmd": "load", "path": "mock"}))
        rest = memoryview(lines({"id": "g", "cmd": "generate", "prompt": prompt}))
        while rest:
            rest = rest[os.write(to_worker, rest) :]
        output = read_until(from_worker, b'"finish_reason"')
        os.close(to_worker)
        assert worker.wait(SECONDS) == 0
    os.close(from_worker)
    events = [json.loads(line) for line in output.splitlines()]
    assert "".join(event["token"] for event in events if event["event"] == "token") == prompt


OWN_TERMINAL = """
import fcntl, os, signal, sys, termios
signal.signal(signal.SIGINT, signal.SIG_DFL)
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.argv[1], sys.argv[1:])
"""


class Terminal:
    """A worker on a terminal that is its own."""

    def __init__(self) -> None:
        self.master, slave = pty.openpty()
        tty.setraw(slave)
        attributes = termios.tcgetattr(slave)
        attributes[3] |= termios.ISIG  # Ctrl-C is a signal again
        termios.tcsetattr(slave, termios.TCSANOW, attributes)
        self.process = subprocess.Popen(
            [sys.executable, "-c", OWN_TERMINAL, *MOCK],
            stdin=slave,
            stdout=slave,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        os.close(slave)

    def __enter__(self) -> "Terminal":
        return self

    def __exit__(self, *exc: object) -> None:
        self.process.kill()
        self.process.wait(SECONDS)

    def start_endless(self) -> bytes:
        work = {"id": "g", "cmd": "generate", "prompt": "a b", "max_tokens": 1_000_000}
        os.write(self.master, lines({"id": "l", "cmd": "load", "path": "mock:step_ms=1"}, work))
        return read_until(self.master, b'"token_ids"')


def test_a_worker_on_a_terminal_ends_with_ctrl_c() -> None:
    with Terminal() as terminal:
        terminal.start_endless()
        os.write(terminal.master, b"\x03")
        assert b'"finish_reason":"cancelled"' in read_until(terminal.master, b'"finish_reason"')
        assert terminal.process.wait(GONE_SECONDS) == 0
        os.close(terminal.master)


def test_a_terminal_that_is_hung_up_ends_the_worker() -> None:
    with Terminal() as terminal:
        terminal.start_endless()
        os.close(terminal.master)
        assert terminal.process.wait(GONE_SECONDS) in (0, 74), "SIGHUP comes, and the host is gone"
