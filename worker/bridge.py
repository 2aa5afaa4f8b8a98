"""Start a worker, for hosts of the older bridge that run this file.

The file stands alone, so that a program can carry it, as Go's go:embed does. It needs lmwire in the Python that runs
it. If that is missing, or if the Python is too old for it, each request is answered with what to install.
"""

import json
import sys

NEEDED = (3, 11)
EXTRA = "worker" if sys.platform == "darwin" else "cpu"
"""The extra of lmwire with the libraries for this machine's models."""
WHEEL = "`make wheel` builds in a checkout of lmwire: it is not on a package index yet"


def main():
    """Run a worker on this process's pipes."""
    if sys.version_info < NEEDED:
        version = ".".join(map(str, sys.version_info[:2]))
        answer_with(
            f"lmwire needs Python 3.11 or newer, and {sys.executable} is Python {version}: make python3 in PATH a newer"
            f" one, and install lmwire's wheel there, which {WHEEL}"
        )
        return
    try:
        import lmwire_worker.worker  # noqa: F401, what a worker needs before it can answer
        from lmwire_worker.__main__ import main as run
    except ModuleNotFoundError as error:
        if error.name == "lmwire_worker":
            command = f"`{sys.executable} -m pip install 'WHEEL[{EXTRA}]'`"
            answer_with(f"lmwire is not installed; install its wheel with {command}, which {WHEEL}")
        else:
            answer_with(f"{error.name} is not installed; install it with {install_commands()}")
        return
    run()


def install_commands():
    """Return the commands that add the libraries to the lmwire of the Python that runs this file."""
    command = f"`{sys.executable} -m pip install 'lmwire[{{}}]'`".format
    return command(EXTRA) + ("" if sys.platform == "darwin" else f" (or {command('cuda')} for an NVIDIA GPU)")


def answer_with(problem):
    """Answer each request with an error until `quit` or the end of stdin, as the older bridge did without mlx-lm."""
    sys.stderr.write(f"bridge.py: {problem}\n")
    sys.stderr.flush()
    for line in iter(sys.stdin.readline, ""):
        try:
            command = json.loads(line).get("cmd")
        except (ValueError, AttributeError):
            command = "parse error"
        if command == "quit":
            return
        if line.strip() and command != "cancel":
            sys.stdout.write(json.dumps({"error": f"{command}: {problem}"}) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
