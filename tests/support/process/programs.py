"""Programs of other projects, which tests run where they are installed."""

import os
import shutil
from typing import NoReturn

import pytest

_MORE_FOLDERS = ("/usr/sbin", "/usr/local/bin", "/opt/homebrew/bin")
"""Folders that have programs such as nginx, but may be missing in PATH."""


def program(name: str) -> str:
    """Return the path of a program, which .ci/run or a workflow installs. Without it the test is skipped or fails."""
    path = os.pathsep.join((os.environ.get("PATH", os.defpath), *_MORE_FOLDERS))
    return shutil.which(name, path=path) or refuse(f"{name} is not installed")


def refuse(reason: str) -> NoReturn:
    """Skip the tests of a program that this machine does not have. In CI they fail."""
    if os.environ.get("CI") == "true":
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)
