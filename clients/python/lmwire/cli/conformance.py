"""`lmwire conformance`: run the kit, and report its cases on stdout and in files."""

import sys
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path

from lmwire_conformance import baseline, report
from lmwire_conformance.report import CaseResult
from lmwire_protocol.printable import one_line, printable

from .errors import USAGE, CliError


def run(arguments: Namespace) -> int:
    """Run the kit's side that the command line names, and return the exit code."""
    try:
        known = baseline.read(arguments.baseline) if arguments.baseline else {}
        cases = {"worker": _check_worker, "host": _check_host}[arguments.side](arguments, known)
        return report_cases(arguments, cases)
    except (ValueError, OSError) as error:
        raise CliError(f"conformance: {error}", USAGE) from None


def _check_worker(arguments: Namespace, known: baseline.Baseline) -> list[CaseResult]:
    from lmwire_conformance.worker import check_worker

    return check_worker(
        arguments.command,
        model=arguments.model,
        only=arguments.only,
        known=known,
        seconds=arguments.timeout,
        on_result=_Progress(),
    )


def _check_host(arguments: Namespace, known: baseline.Baseline) -> list[CaseResult]:
    from lmwire_conformance.host import check_host

    return check_host(
        arguments.command, only=arguments.only, known=known, seconds=arguments.timeout, on_result=_Progress()
    )


class _Progress:
    """Counts finished cases on stderr, if that is a terminal."""

    def __init__(self) -> None:
        self._count = 0

    def __call__(self, case: CaseResult) -> None:
        self._count += 1
        if sys.stderr.isatty():
            print(f"\r\x1b[K{self._count} {one_line(case.name)}", end="", file=sys.stderr, flush=True)


def report_cases(arguments: Namespace, cases: Sequence[CaseResult]) -> int:
    """Print the report, write the files, and return the exit code."""
    if sys.stderr.isatty():
        print("\r\x1b[K", end="", file=sys.stderr)
    for case in cases:
        print(printable(report.format_result(case)))
    print(report.summary(cases))
    _write(arguments.junit, report.as_junit(cases, f"lmwire conformance {arguments.side}"))
    _write(arguments.json, report.as_json(cases))
    return report.exit_code(cases)


def _write(path: Path | None, text: str) -> None:
    if path is not None:
        path.write_text(text, encoding="utf-8")
