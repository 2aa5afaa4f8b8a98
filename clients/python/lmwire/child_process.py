"""Commands and environments for child processes, so that no code in the working directory runs in them.

The working directory may be an untrusted repository. Python imports from it when it is started with `-m`, and wherever
an environment variable contains an empty or a relative path.
"""

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

BUNDLE: Final = "lmwire"
"""Value of `sys.frozen` in the program of a bundle. Other programs without a Python of their own have other values."""
_PATHS: Final = ("PYTHONPATH", "PYTHONHOME", "PYTHONUSERBASE", "PYTHONPYCACHEPREFIX")
"""Variables in which Python looks for modules and for their compiled form."""
_REMOVED: Final = ("PYTHONINSPECT",)
"""Variables that a child must not have: with this one, it would wait at Python's prompt instead of ending."""


def python_command(module: str, *arguments: str) -> list[str]:
    """Return the command that runs a module of this installation.

    Args:
        module: The module's name.
        arguments: Its command line.
    """
    return [python_program(), "-P", "-m", module, *arguments]


def python_program() -> str:
    """Return the program that runs lmwire's modules: this Python, or the bundle beside a frozen program.

    PyInstaller, py2app and cx_Freeze turn a Python program into a frozen one. Its `sys.executable` is the program
    itself, so `-m` would start it again. The bundle's folder is `lmwire`, as docs/hosts.md says.
    """
    if getattr(sys, "frozen", BUNDLE) == BUNDLE:
        return sys.executable
    folder = Path(sys.executable).resolve().parent
    beside = folder / "lmwire" / "lmwire"
    in_resources = folder.parent / "Resources" / "lmwire" / "lmwire"
    return str(in_resources if sys.platform == "darwin" and in_resources.is_file() else beside)


DEFAULT_COMMAND: Final = tuple(python_command("lmwire_worker"))
"""The command that starts this installation's own worker. More arguments may follow."""


def missing_bundle_hint(program: str) -> str:
    """Return what to do about a program that cannot run, as the end of a sentence; empty if there is nothing to add.

    Args:
        program: The program.
    """
    is_bundle = program == python_program() != sys.executable
    return "; put the folder that `lmwire bundle` makes beside the app's program" if is_bundle else ""


def child_environment(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return an environment for a child, in which Python's paths have only absolute entries."""
    child = {name: value for name, value in environment.items() if name not in _REMOVED}
    for name in _PATHS:
        if name in child:
            child[name] = os.pathsep.join(filter(os.path.isabs, child[name].split(os.pathsep)))
            if not child[name]:
                del child[name]
    return child
