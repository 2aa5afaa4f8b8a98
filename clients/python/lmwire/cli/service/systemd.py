"""The unit of systemd for a user.

https://www.freedesktop.org/software/systemd/man/latest/systemd.service.html
"""

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from ..errors import USAGE, CliError
from .manager import Command, ServiceManager

UNIT: Final = "lmwire.service"
_PLAIN: Final = re.compile(r"[A-Za-z0-9_./:=@+,-]+")
_UNIT_FILE: Final = """\
# Written by `lmwire service install`, which replaces it; `lmwire service remove` removes it.
[Unit]
Description=lmwire serve: models over HTTP
After=network.target

[Service]
ExecStart={command}
Restart=on-failure
RestartSec=5
# 64 is wrong usage: another start would fail as well.
RestartPreventExitStatus=64
# Running requests have --drain, 30 seconds, to end.
TimeoutStopSec=60
KillMode=mixed
UMask=0077
NoNewPrivileges=yes
LockPersonality=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK
SystemCallArchitectures=native

[Install]
WantedBy=default.target
"""
# Mount and device protections are left out: they need privileges that a user's manager does not have, or hide a GPU.
# MemoryDenyWriteExecute is left out as well: MLX compiles code.


def unit_path() -> Path:
    """Return the path of the unit's file."""
    base = Path(os.environ.get("XDG_CONFIG_HOME", ""))
    return (base if base.is_absolute() else Path.home() / ".config") / "systemd" / "user" / UNIT


def unit_file(command: Sequence[str]) -> bytes:
    """Return the unit's file.

    Args:
        command: The command line to run.

    Raises:
        CliError: An argument has a control character, which a unit cannot hold.
    """
    return _UNIT_FILE.format(command=" ".join(map(_quoted, command))).encode()


def _quoted(word: str) -> str:
    """Return a word so that systemd reads it back: % and $ have meanings, and control characters end a line."""
    if any(ord(character) < 32 or ord(character) == 127 for character in word):
        raise CliError(f"{word!r} has a control character, which a systemd unit cannot hold", USAGE)
    word = word.replace("%", "%%").replace("$", "$$")
    if _PLAIN.fullmatch(word):
        return word
    escaped = word.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _start(_: Path) -> list[Command]:
    return [
        ["systemctl", "--user", "daemon-reload"],
        ["systemctl", "--user", "enable", UNIT],
        ["systemctl", "--user", "restart", UNIT],
    ]


def _stop(_: Path) -> list[Command]:
    return [["systemctl", "--user", "disable", "--now", UNIT]]


MANAGER: Final = ServiceManager(
    name="systemd",
    path=unit_path,
    content=unit_file,
    start=_start,
    stop=_stop,
    reload=[["systemctl", "--user", "daemon-reload"]],
    status=["systemctl", "--user", "--no-pager", "status", UNIT],
    after_install="log: journalctl --user -u lmwire\n"
    "It starts when you log in. To start it with the machine: loginctl enable-linger",
)
