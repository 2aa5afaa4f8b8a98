"""Commands that install lmwire's optional libraries, for error messages.

pip takes the extras from the lmwire that is installed. So one command is right, whether that came from a checkout, from
a wheel or from an index.
"""

import sys
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
    return f"pip install 'lmwire[{extra}]'"
