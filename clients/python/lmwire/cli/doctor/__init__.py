"""`lmwire doctor`: check that lmwire can work on this machine."""

import json
import os
import sys
from argparse import Namespace
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Final

from lmwire_protocol.printable import printable

from ..errors import FAILED, OK
from .installation import Finding, Level, check_config, check_environment, check_packages, check_python
from .machine import (
    check_blas,
    check_device,
    check_disk,
    check_hub,
    check_models,
    check_port,
    check_temporary_files,
    check_tool_calls,
)

_COLORS: Final[dict[Level, str]] = {"ok": "32", "warn": "33", "fail": "31"}


def run(arguments: Namespace) -> int:
    """Print the findings, and return the exit code."""
    found: list[Finding] = []
    for finding in check(arguments.models, offline=arguments.offline):
        found.append(finding)
        if not arguments.json:
            print(_line(finding), flush=True)
    if arguments.json:
        print(json.dumps([asdict(finding) for finding in found], indent=2))
    return FAILED if any(finding.level == "fail" for finding in found) else OK


def check(models: Sequence[str], *, offline: bool) -> Iterator[Finding]:
    """Yield the findings, the quick checks first.

    Args:
        models: The models whose tool calls to check; empty for all models on this machine.
        offline: Leave the hub alone.
    """
    yield check_python()
    packages = [*check_packages()]
    yield from packages
    yield check_config()
    yield from check_environment(os.environ)
    yield from check_disk()
    yield check_temporary_files()
    yield check_port()
    yield check_hub(offline=offline)
    device, finding = check_device()
    if device or all(each.level != "fail" for each in packages):  # else its cause and its fix have been named
        yield finding
    if device:
        yield from check_blas(device, os.environ)
        yield from check_models(device)
        yield from check_tool_calls(models)


def _line(finding: Finding) -> str:
    fix = f"\n      {'':12} {finding.fix}" if finding.fix else ""
    return f"{_colored(finding.level)} {printable(f'{finding.topic:12} {finding.text}{fix}')}"


def _colored(level: Level) -> str:
    word = f"{level:5}"
    plain = not sys.stdout.isatty() or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return word if plain else f"\x1b[{_COLORS[level]}m{word}\x1b[0m"
