"""Commands that install lmwire's optional libraries, for error messages.

pip and uv take the extras from the lmwire that is installed. So one command is right, whether that came from a
checkout, from a wheel or from an index.
"""

import shlex
import sys
from pathlib import Path
from typing import Final

WORKER_EXTRA: Final = "worker" if sys.platform == "darwin" else "cpu"
"""The extra with the libraries that run models on this machine."""


def install_hint(extra: str) -> str:
    """Return the end of an error message about a library that is not installed.

    Args:
        extra: The extra of lmwire that has the library.
    """
    return f"install it with `{install_command(extra)}`"


def worker_install_hint() -> str:
    """Return the end of an error message about the libraries that run models on this machine."""
    others = "" if sys.platform == "darwin" else f" (or `{install_command('cuda')}` for an NVIDIA GPU)"
    return f"{install_hint(WORKER_EXTRA)}{others}"


def install_command(extra: str) -> str:
    """Return the command that adds an extra to the lmwire that is installed."""
    return f"{_pip()} 'lmwire[{extra}]'"


def _pip() -> str:
    """Return the command that installs into this environment. Those of uv and pipx have no pip on PATH."""
    environment = Path(sys.prefix)
    if (environment / "pipx_metadata.json").exists():
        return "pipx runpip lmwire install"
    try:
        made_by_uv = "\nuv = " in (environment / "pyvenv.cfg").read_text(encoding="utf-8")
    except OSError:
        made_by_uv = False
    return f"uv pip install --python {shlex.quote(sys.prefix)}" if made_by_uv else "pip install"
