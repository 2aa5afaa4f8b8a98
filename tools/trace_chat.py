"""List the files of the worker package that run for one plain chat: `python tools/trace_chat.py`.

A new contributor reads these files to follow a request, so their number should be small. A worker with the built-in
model records each function that it calls, from the arrival of the command line until the last line of the request.
Code that runs at an import does not count.
"""

import json
import subprocess
import sys
import threading
from pathlib import Path
from types import FrameType
from typing import Any, Final

import lmwire_worker
from lmwire_worker.process.stdio import Pipes

PACKAGE: Final = f"{Path(lmwire_worker.__file__).parent}/"
OTHER_THREADS: Final = {"monitor", "memory-pressure", "stray-stdout"}
"""Threads that do no work for a request."""
LOAD: Final = {"id": "load", "cmd": "load", "path": "builtin:tiny"}
CHAT: Final = {"id": "chat", "cmd": "chat", "messages": [{"role": "user", "content": "Who are you?"}], "max_tokens": 8}
LAST_LINE: Final = b'"event":"done","id":"chat"'


def traced_files() -> list[str]:
    """Return the files that ran for a chat, relative to the worker package.

    Raises:
        RuntimeError: The chat failed.
    """
    command = [sys.executable, "-P", __file__, "--worker"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as worker:
        assert worker.stdin and worker.stdout and worker.stderr
        last = b""
        for request in (LOAD, CHAT):
            worker.stdin.write(json.dumps(request).encode() + b"\n")
            worker.stdin.flush()
            while True:
                last = worker.stdout.readline()
                if not last.startswith((b'{"event":"progress"', b'{"event":"token"')):
                    break
        worker.stdin.close()
        logged = worker.stderr.read().decode()
    if LAST_LINE not in last:
        raise RuntimeError(f"the chat ended with {last.decode() or 'nothing'!r}: {logged}")
    return json.loads(logged.splitlines()[-1])


class _Recorder:
    """Records the files whose functions run between the command and its last line."""

    def __init__(self) -> None:
        self.is_recording = False
        self.files: set[str] = set()

    def __call__(self, frame: FrameType, event: str, argument: object) -> None:
        """Record a call, as a profile function of `sys.setprofile`."""
        code = frame.f_code
        if not self.is_recording or event != "call" or code.co_name == "<module>":
            return
        if code.co_filename.startswith(PACKAGE) and threading.current_thread().name not in OTHER_THREADS:
            self.files.add(code.co_filename.removeprefix(PACKAGE))


def _run_worker() -> None:
    from lmwire_worker.__main__ import main

    recorder = _Recorder()
    read, write = Pipes.read, Pipes.write

    def traced_read(self: Pipes, size: int) -> bytes:
        data = read(self, size)
        if b'"cmd": "chat"' in data:
            recorder.is_recording = True
        return data

    def traced_write(self: Pipes, data: bytes) -> None:
        is_last = LAST_LINE in data
        recorder.is_recording = recorder.is_recording and not is_last  # before the host, which then ends the worker
        write(self, data)
        if is_last:
            print(json.dumps(sorted(recorder.files)), file=sys.stderr, flush=True)

    patched: Any = Pipes
    patched.read, patched.write = traced_read, traced_write
    threading.setprofile(recorder)
    sys.setprofile(recorder)
    main([])


if __name__ == "__main__":
    if sys.argv[1:] == ["--worker"]:
        _run_worker()
    files = traced_files()
    print("\n".join(files))
    print(f"{len(files)} files", file=sys.stderr)
