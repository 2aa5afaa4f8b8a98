"""The sentence for a library that is not installed, and the commands that install lmwire's optional libraries.

pip and uv take the extras from the lmwire that is installed. So one command is right, whether that came from a
checkout, from a wheel or from an index.
"""

import shlex
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Final

WORKER_EXTRA: Final = "worker" if sys.platform == "darwin" else "cpu"
"""The extra with the libraries that run models on this machine."""


def not_installed(library: str, extra: str | None, *, purpose: str | None = None) -> str:
    """Return the error message for a library that is not installed.

    Args:
        library: The library.
        extra: The extra of lmwire that has the library; None if lmwire itself needs it.
        purpose: What the library does, such as "reads images".
    """
    which = f", which {purpose}," if purpose else ""
    return f"{library}{which} is not installed; install it with `{install_command(extra)}`"


def worker_not_installed() -> str:
    """Return the error message for a machine without the libraries that run models."""
    return f"{not_installed('mlx-lm', WORKER_EXTRA)}{_for_other_devices()}"


def worker_install_hint() -> str:
    """Return the end of an error message about libraries that run models, and that do not work here."""
    return f"install it with `{install_command(WORKER_EXTRA)}`{_for_other_devices()}"


def install_command(extra: str | None) -> str:
    """Return the command that adds an extra to the lmwire that is installed."""
    return f"{_pip()} 'lmwire[{extra}]'" if extra else f"{_pip()} lmwire"


def installer() -> list[str]:
    """Return the words of the command that installs, for a program that runs it."""
    command = shlex.split(_pip())
    return [sys.executable, "-P", "-m", *command] if command[0] == "pip" and find_spec("pip") else command


def _pip() -> str:
    """Return the command that installs into this environment. Those of uv, pipx and Homebrew have no pip."""
    environment = Path(sys.prefix)
    if (environment / "pipx_metadata.json").exists():
        return "pipx runpip lmwire install"
    try:
        made_by_uv = "\nuv = " in (environment / "pyvenv.cfg").read_text(encoding="utf-8")
    except OSError:
        made_by_uv = False
    if made_by_uv:
        return f"uv pip install --python {shlex.quote(sys.prefix)}"
    # Nothing can be added to a bundle. Another one is made where lmwire is installed, by pip as a rule.
    if find_spec("pip") or getattr(sys, "frozen", False):
        return "pip install"
    return f"python3 -m pip --python {shlex.quote(sys.prefix)} install"


def _for_other_devices() -> str:
    return "" if sys.platform == "darwin" else f" (or `{install_command('cuda')}` for an NVIDIA GPU)"
