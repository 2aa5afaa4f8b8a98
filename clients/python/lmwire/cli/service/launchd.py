"""The agent of launchd, on macOS.

https://www.manpagez.com/man/5/launchd.plist/
"""

import os
import plistlib
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from .manager import Command, ServiceManager

LABEL: Final = "io.github.lmwire.serve"


def agent_path() -> Path:
    """Return the path of the agent's file."""
    return Path.home() / "Library" / "LaunchAgents" / f"{LABEL}.plist"


def log_path() -> Path:
    """Return the path of the agent's log."""
    return Path.home() / "Library" / "Logs" / "lmwire.log"


def agent_file(command: Sequence[str]) -> bytes:
    """Return the agent's file, a property list.

    Args:
        command: The command line to run.
    """
    return plistlib.dumps(
        {
            "Label": LABEL,
            "ProgramArguments": list(command),
            "RunAtLoad": True,
            "KeepAlive": {"SuccessfulExit": False},
            "ThrottleInterval": 10,
            # Running requests have --drain, 30 seconds, to end.
            "ExitTimeOut": 60,
            # Background processes are throttled; this one answers a user who waits.
            "ProcessType": "Interactive",
            "Umask": 0o077,
            "StandardOutPath": str(log_path()),
            "StandardErrorPath": str(log_path()),
        },
        sort_keys=False,
    )


def _domain() -> str:
    return f"gui/{os.getuid()}"


def _start(path: Path) -> list[Command]:
    # `bootout` fails if no agent runs, and `bootstrap` if one does.
    replace = 'launchctl bootout "$1/$2" 2>/dev/null; exec launchctl bootstrap "$1" "$3"'
    return [["sh", "-c", replace, "sh", _domain(), LABEL, str(path)]]


def _stop(_: Path) -> list[Command]:
    return [["launchctl", "bootout", f"{_domain()}/{LABEL}"]]


MANAGER: Final = ServiceManager(
    name="launchd",
    path=agent_path,
    content=agent_file,
    start=_start,
    stop=_stop,
    reload=[],
    status=["launchctl", "print", f"{_domain()}/{LABEL}"],
    after_install="log: ~/Library/Logs/lmwire.log",
)
