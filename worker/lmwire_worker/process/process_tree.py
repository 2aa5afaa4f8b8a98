"""The processes above this one."""

import os


def is_ancestor(pid: int) -> bool:
    """Whether `pid` is this process's parent, or its parent's, and so on."""
    above = os.getppid()
    while above > 1:
        if above == pid:
            return True
        above = _parent(above)
    return above == pid


def _parent(pid: int) -> int:
    """The parent of `pid`; 0 when that cannot be found out."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as stat:
            return int(stat.read().rpartition(b")")[2].split()[1])  # a name in brackets may hold anything
    except FileNotFoundError:
        return _parent_by_ps(pid)
    except (OSError, ValueError, IndexError):
        return 0


def _parent_by_ps(pid: int) -> int:
    """Where there is no /proc (macOS)."""
    import subprocess

    asked = subprocess.run(["ps", "-o", "ppid=", "-p", str(pid)], capture_output=True, check=False)
    return int(asked.stdout) if asked.stdout.strip().isdigit() else 0
