"""How this installation starts programs, so that nothing in the working directory runs in them.

The working directory may be somebody else's repository. Python imports from it when it is started with `-m`, and
wherever an environment variable holds an empty or a relative path.
"""

import os
import sys
from collections.abc import Mapping
from typing import Final

_PATHS: Final = ("PYTHONPATH", "PYTHONHOME", "PYTHONUSERBASE", "PYTHONPYCACHEPREFIX")
"""Where Python looks for modules and for their compiled form."""
_REMOVED: Final = ("PYTHONINSPECT",)
"""A program that should end would wait at Python's prompt."""


def python_command(module: str, *arguments: str) -> list[str]:
    """Return the command that runs a module of this installation.

    Args:
        module: Its name.
        arguments: Its command line.
    """
    return [sys.executable, "-P", "-m", module, *arguments]


def child_environment(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the environment for a child: this one, where Python's paths keep their absolute entries alone."""
    child = {name: value for name, value in environment.items() if name not in _REMOVED}
    for name in _PATHS:
        if name in child:
            child[name] = os.pathsep.join(filter(os.path.isabs, child[name].split(os.pathsep)))
            if not child[name]:
                del child[name]
    return child
