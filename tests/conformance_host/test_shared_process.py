"""The cases of a group share a process of the driver, and what one of them leaves there fails no other."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from lmwire_conformance.host import check_host, runner
from lmwire_conformance.host.driver_process import DriverProcess
from lmwire_conformance.report import CaseResult
from support.process.worker_process import SECONDS
from support.protocol.mutant_host import DRIVER, command

pytestmark = pytest.mark.slow

CASES = [
    "commands.writes-the-id-first",
    "commands.uses-no-id-that-is-in-flight",
    "commands.reads-while-its-write-is-stuck",
]

FILTER = f"""
import json, subprocess, sys, threading
driver = subprocess.Popen([sys.executable, {str(DRIVER)!r}], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
cases = 0
def report():
    for line in driver.stdout:
        sys.stdout.write(line)
        %(after_a_report)s
        sys.stdout.flush()
threading.Thread(target=report, daemon=True).start()
for line in sys.stdin:
    cases += '"start"' in line
    %(before_an_instruction)s
    driver.stdin.write(line)
    driver.stdin.flush()
driver.stdin.close()
code = driver.wait()
%(at_the_end)s
sys.exit(code)
"""
"""The Python client's driver, wrapped in a filter into which a test inserts a fault."""

Started = list[DriverProcess]


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Started:
    """Return the list of the driver processes that the kit starts."""
    processes: Started = []

    class Recorded(DriverProcess):
        def __init__(self, command: list[str], timeout: float) -> None:
            super().__init__(command, timeout)
            processes.append(self)

    monkeypatch.setattr(runner, "DriverProcess", Recorded)
    return processes


def filtered(
    *, after_a_report: str = "pass", before_an_instruction: str = "pass", at_the_end: str = "pass"
) -> list[str]:
    code = FILTER % {
        "after_a_report": after_a_report,
        "before_an_instruction": before_an_instruction,
        "at_the_end": at_the_end,
    }
    return [sys.executable, "-c", code]


def check(driver: list[str], on_result: Callable[[CaseResult], None] = lambda result: None) -> dict[str, str]:
    results = check_host(driver, only=CASES, seconds=SECONDS, on_result=on_result)
    return {result.name: result.outcome for result in results}


def test_the_cases_of_a_group_share_one_process(started: Started) -> None:
    reported: list[str] = []
    assert check([sys.executable, str(DRIVER)], lambda result: reported.append(result.name)) == dict.fromkeys(
        CASES, "pass"
    )
    assert reported == CASES
    assert [process.cases for process in started] == [3]


def test_groups_do_not_share_a_process(started: Started) -> None:
    only = [CASES[0], "startup.sends-hello-first"]
    check_host([sys.executable, str(DRIVER)], only=only, seconds=SECONDS)
    assert [process.cases for process in started] == [1, 1]


def test_a_case_that_fails_leaves_the_others_alone(started: Started) -> None:
    outcomes = check(command("numbers_requests_by_how_many_run"))
    assert outcomes == {CASES[0]: "pass", CASES[1]: "fail", CASES[2]: "pass"}
    assert [process.cases for process in started] == [2, 1, 1]


def test_a_fault_that_an_earlier_case_leaves_fails_no_later_one(started: Started) -> None:
    # From its second case on, this driver cannot start a worker.
    broken = """if cases > 1 and '"start"' in line: line = '{"do": "close"}\\n'"""
    assert check(filtered(before_an_instruction=broken)) == dict.fromkeys(CASES, "pass")
    assert [process.cases for process in started] == [2, 1, 1]


def test_a_driver_may_exit_after_each_case(started: Started) -> None:
    leaving = """if '"closed"' in line: sys.stdout.flush(); driver.kill(); __import__("os")._exit(0)"""
    assert check(filtered(after_a_report=leaving)) == dict.fromkeys(CASES, "pass")
    assert [process.cases for process in started] == [2, 1, 1]


def test_an_invalid_report_that_comes_late_is_charged_to_its_own_case(started: Started) -> None:
    # It repeats the end of the first case's first request, once the second case has started.
    repeat = """if '"name": "a.1"' in line: late = line
        if '"name": "r0.' in line and "late" in globals(): sys.stdout.write(globals().pop("late"))"""
    faulty = filtered(after_a_report=f"global late\n        {repeat}")
    outcomes = check(faulty)
    # Alone, the first case ends before the fault shows.
    assert outcomes == dict.fromkeys(CASES, "pass")
    assert [process.cases for process in started] == [3, 1]


@pytest.mark.parametrize("fault", ["code = 3", """print('{"saw": "closed"}')"""])
def test_a_driver_that_ends_badly_fails_each_case_in_which_it_does(started: Started, fault: str) -> None:
    assert check(filtered(at_the_end=fault)) == dict.fromkeys(CASES, "fail")
    assert [process.cases for process in started] == [3, 1, 1, 1]


def test_the_process_of_a_driver_that_does_not_start_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(OSError, match="/nonexistent"):
        check(["/nonexistent"])
    assert list(tmp_path.iterdir()) == []
