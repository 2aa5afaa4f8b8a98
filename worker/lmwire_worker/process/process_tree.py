"""The processes above this one."""

import os


def is_ancestor(pid: int) -> bool:
    """Return whether `pid` is an ancestor of this process."""
    above = os.getppid()
    while above > 1:
        if above == pid:
            return True
        above = _parent(above)
    return above == pid


def _parent(pid: int) -> int:
    """Return the parent of `pid`; 0 if it cannot be determined."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as stat:
            return int(stat.read().rpartition(b")")[2].split()[1])  # a name in brackets may hold anything
    except FileNotFoundError:
        return _parent_by_ps(pid)
    except (OSError, ValueError, IndexError):
        return 0


def _parent_by_ps(pid: int) -> int:
    """Return the same on a system without /proc (macOS)."""
    import subprocess

    result = subprocess.run(["ps", "-o", "ppid=", "-p", str(pid)], capture_output=True, check=False)
    return int(result.stdout) if result.stdout.strip().isdigit() else 0
