"""The kit for hosts: its reports on invalid drivers, its choice of cases, and the rules that it covers."""

import json
import re
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import lmwire_conformance
from lmwire_conformance.host import CASES, check_host
from lmwire_conformance.host.driver import REPORT_KINDS
from lmwire_conformance.host.played_worker import PlayedWorker
from lmwire_conformance.report import CaseResult
from support.process.lmwire_command import lmwire
from support.process.worker_process import SECONDS
from support.protocol import prose
from support.protocol.mutant_host import DRIVER, command

HELLO = "startup.sends-hello-first"
HOST = ("conformance", "host", "--timeout", str(SECONDS))
HOSTS = Path(lmwire_conformance.__file__).with_name("HOSTS.md").read_text(encoding="utf-8")


def check(code: str) -> CaseResult:
    """Play one case against a driver of a few lines."""
    (tried,) = check_host([sys.executable, "-c", code], only=[HELLO], seconds=SECONDS)
    return tried


@pytest.mark.slow
def test_a_driver_that_exits_too_early_is_reported_with_its_stderr() -> None:
    case = check("import sys; sys.exit('no such library')")
    assert case.outcome == "fail"
    assert case.expected == "a driver that runs until its stdin ends"
    assert "no such library" in case.seen


@pytest.mark.slow
def test_a_driver_that_starts_no_worker_is_reported() -> None:
    case = check("""input(); print('{"saw": "started"}', flush=True); input()""")
    assert (case.outcome, case.expected) == ("fail", "the host spawns $LMWIRE_WORKER_COMMAND")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("started", "JSON objects with a member `saw`"),
        ('{"saw": "everything"}', "one of started"),
        ('{"saw": "done", "name": "x"}', "names of requests"),
    ],
)
def test_an_invalid_line_of_a_driver_is_reported(line: str, expected: str) -> None:
    spawn = "import json, os, subprocess; w = subprocess.Popen(json.loads(os.environ['LMWIRE_WORKER_COMMAND']),"
    hello = (
        'stdin=-1, stdout=-3, start_new_session=True); w.stdin.write(b\'{"id":"1","cmd":"hello"}\\n\'); w.stdin.flush()'
    )
    case = check(f"{spawn} {hello}; print({line!r}, flush=True); input()")
    assert case.outcome == "fail"
    assert expected in case.expected
    assert line in case.seen


IMPATIENT = f"""
import itertools, json, subprocess, sys
start = input()
if json.loads(start)["timeout"] == 0.5:
    print('{{"saw": "start_failed"}}', flush=True)  # as if the machine had not even started the worker by then
    sys.exit(input() and 0)
driver = subprocess.Popen([sys.executable, {str(DRIVER)!r}], stdin=subprocess.PIPE, text=True)
for line in itertools.chain([start + "\\n"], sys.stdin):
    driver.stdin.write(line)
    driver.stdin.flush()
driver.stdin.close()
sys.exit(driver.wait())
"""


@pytest.mark.slow
def test_a_host_that_gives_up_before_its_worker_has_started_is_asked_for_a_longer_time() -> None:
    name = "startup.gives-up-a-worker-that-never-answers-hello"
    (case,) = check_host([sys.executable, "-c", IMPATIENT], only=[name], seconds=SECONDS)
    assert case.outcome == "pass", (case.expected, case.seen)


def waits_the_first_time(monkeypatch: pytest.MonkeyPatch, method: str, wait: Callable[[PlayedWorker], object]) -> None:
    """Make the kit so slow at the first call of a method that something happens before it."""
    original = getattr(PlayedWorker, method)

    def slow(self: PlayedWorker, *arguments: Any) -> Any:
        if method != "write" or arguments[0].get("event") == "token":
            monkeypatch.setattr(PlayedWorker, method, original)
            wait(self)
        return original(self, *arguments)

    monkeypatch.setattr(PlayedWorker, method, slow)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "method"),
    [
        ("sends-quit-first", "sigterm_arrived"),
        ("reads-both-pipes-while-closing", "flood_stderr"),
        ("sends-sigterm-after-the-end-of-stdin", "expect_sigterm"),
    ],
)
def test_a_host_that_goes_on_with_its_shutdown_before_the_kit_has_seen_a_step_is_tried_again(
    name: str, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits_the_first_time(monkeypatch, method, lambda worker: worker.expect_killed())
    (case,) = check_host([sys.executable, str(DRIVER)], only=[f"shutdown.{name}"], seconds=SECONDS)
    assert case.outcome == "pass", (case.expected, case.seen)


@pytest.mark.slow
def test_a_host_that_gives_up_a_request_before_its_text_has_come_is_asked_for_a_longer_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    waits_the_first_time(monkeypatch, "write", lambda worker: worker.expect("cancel"))
    name = "cancellation.cancels-a-request-that-it-gives-up"
    (case,) = check_host([sys.executable, str(DRIVER)], only=[name], seconds=SECONDS)
    assert case.outcome == "pass", (case.expected, case.seen)


@pytest.mark.slow
def test_a_host_that_never_starts_a_worker_is_reported() -> None:
    name = "startup.gives-up-a-worker-that-never-answers-hello"
    never = """input(); print('{"saw": "start_failed"}', flush=True); input()"""
    (case,) = check_host([sys.executable, "-c", never], only=[name], seconds=10.0)
    assert (case.outcome, case.expected) == ("fail", "the host spawns $LMWIRE_WORKER_COMMAND")


@pytest.mark.slow
def test_a_failure_shows_the_lines_before_it() -> None:
    (case,) = check_host(command("writes_the_id_last"), only=["commands.writes-the-id-first"], seconds=SECONDS)
    assert case.seen.startswith('{"cmd": "generate", "prompt": "the prompt of a", "id": "2"}\n')
    assert 'do  {"do": "request", "name": "a.1"' in case.seen
    assert '← {"event":"done","id":"1","protocol":1' in case.seen


@pytest.mark.parametrize(
    ("only", "some"),
    [
        ("H-4", "startup.skips-a-banner"),
        ("startup", "startup.skips-a-banner"),
        ("startup.skips-a-banner", "startup.skips-a-banner"),
        (
            "worker-loss.kills-the-worker-after-a-line-over-1-mib",
            "worker-loss.kills-the-worker-after-a-line-over-1-mib:whole",
        ),
    ],
)
def test_cases_are_chosen_by_rule_group_and_name(only: str, some: str) -> None:
    assert some in [case.name for case in CASES if only in case.selectors]


@pytest.mark.slow
def test_the_command_reports_and_exits_with_0_or_1(tmp_path: Path) -> None:
    driver = [sys.executable, str(DRIVER), "--asyncio"]
    passed = lmwire(*HOST, "--only", HELLO, "--json", str(tmp_path / "report"), "--", *driver)
    assert passed.returncode == 0
    assert passed.stdout.startswith(f"pass   {HELLO}  [V-1 O-2]")
    assert json.loads((tmp_path / "report").read_text())["cases"][0]["name"] == HELLO

    failed = lmwire(*HOST, "--only", "F-9", "--", *command("writes_the_id_last"))
    assert failed.returncode == 1
    assert "expected: a line whose first member is `id`" in failed.stdout


@pytest.mark.slow
def test_a_baseline_excuses_a_failure_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "known").write_text("commands.writes-the-id-first: the library sorts members\n")
    excused = (*HOST, "--only", "F-9", "--baseline", str(tmp_path / "known"), "--")
    assert lmwire(*excused, *command("writes_the_id_last")).returncode == 0
    stale = lmwire(*excused, sys.executable, str(DRIVER))
    assert stale.returncode == 1
    assert "remove this entry" in stale.stdout


@pytest.mark.slow
def test_a_case_that_does_not_exist_is_wrong_usage() -> None:
    result = lmwire("conformance", "host", "--only", "H-99", "--", "true")
    assert result.returncode == 64
    assert "no case is named 'H-99'" in result.stderr


@pytest.mark.slow
def test_a_driver_that_cannot_be_started_is_wrong_usage() -> None:
    result = lmwire("conformance", "host", "--", "/nonexistent")
    assert result.returncode == 64
    assert "/nonexistent" in result.stderr


def test_every_rule_for_hosts_has_a_case() -> None:
    for_hosts = [rule for rule in prose.rules() if rule.startswith("H-")]
    wanted = {*for_hosts, "F-9", "F-16", "F-17", "I-1", "I-2", "K-1", "K-5", "N-3", "O-1", "O-2", "Q-1", "Q-2"}
    wanted |= {"T-1", "T-2", "T-3", "V-3", "V-4"}
    assert wanted - {rule for case in CASES for rule in case.rules} == set()


def test_every_case_has_a_unique_name_and_existing_rules() -> None:
    assert [name for name, count in Counter(case.name for case in CASES).items() if count > 1] == []
    assert {rule for case in CASES for rule in case.rules} <= set(prose.rules())


def test_hosts_md_describes_every_instruction_and_report() -> None:
    assert set(re.findall(r'"do": ?"(\w+)"', HOSTS)) == {"start", "request", "cancel", "close"}
    assert set(re.findall(r'"saw": ?"(\w+)"', HOSTS)) == set(REPORT_KINDS)


def test_every_name_of_a_case_has_the_host_as_its_subject() -> None:
    names = {case.name.partition(".")[2].partition(":")[0] for case in CASES}
    assert [name for name in names if not re.match(r"[a-z]+s-", name)] == []
