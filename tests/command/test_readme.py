"""The README's examples, run as they stand."""

import json
import re
import subprocess
import sys

from lmwire_command import REPOSITORY

README = (REPOSITORY / "README.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, flags=re.MULTILINE | re.DOTALL)


def test_the_python_example_is_the_file_that_is_tested() -> None:
    assert blocks("python") == [(REPOSITORY / "examples" / "python_chat.py").read_text()]


def test_the_python_example_runs() -> None:
    command = [sys.executable, "examples/python_chat.py", "builtin:tiny", "Who are you?"]
    run = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=60, check=True)
    assert re.fullmatch(r"\S.*\n\((stop|length), \d+ tokens\)\n", run.stdout, flags=re.DOTALL)


def test_the_shell_example_answers_as_shown() -> None:
    run = subprocess.run(["sh", "-c", blocks("sh")[0]], cwd=REPOSITORY, capture_output=True, timeout=60, check=True)
    answered = [event for event in map(json.loads, run.stdout.splitlines()) if event["event"] != "progress"]
    shown = [json.loads(line) for line in blocks("json")[0].splitlines()]
    assert [(event["event"], event["id"], set(event)) for event in answered] == [
        (event["event"], event["id"], set(event)) for event in shown
    ]


def test_what_it_links_to_is_there() -> None:
    for target in re.findall(r"\]\(([^:)]+)\)", README):
        assert (REPOSITORY / target).exists(), target
