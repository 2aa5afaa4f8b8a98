"""A host to be killed: spawns a worker and passes bytes both ways, so that a test can speak to the worker through it.

Run as `python relay_host.py [worker arguments]`.
"""

import os
import subprocess
import sys
import threading


def main() -> None:
    """Relay until the worker's output ends."""
    worker = subprocess.Popen(
        [sys.executable, "-P", "-m", "lmwire_worker", *sys.argv[1:]], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert worker.stdin and worker.stdout
    threading.Thread(target=_copy, args=(0, worker.stdin.fileno()), daemon=True).start()
    _copy(worker.stdout.fileno(), 1)


def _copy(source: int, target: int) -> None:
    while data := os.read(source, 65536):
        while data:
            data = data[os.write(target, data) :]


if __name__ == "__main__":
    main()
