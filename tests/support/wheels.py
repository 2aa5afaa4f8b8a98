"""Wheels that the tests build."""

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

from support.process.worker_process import SECONDS


def build_wheel(source: Path, target: Path) -> Path:
    """Build a wheel with the libraries of the tests' environment, but without its path to the checkout.

    Without `site`, Python reads no path files, so that a module that the source lacks is missing.

    Args:
        source: The folder with pyproject.toml.
        target: The folder that gets the wheel.
    """
    command = [sys.executable, "-S", "-m", "hatchling", "build", "--target", "wheel", "--directory", str(target)]
    libraries = os.environ | {"PYTHONPATH": sysconfig.get_path("purelib")}
    subprocess.run(command, cwd=source, env=libraries, check=True, timeout=SECONDS * 4)
    (wheel,) = target.glob("*.whl")
    return wheel
