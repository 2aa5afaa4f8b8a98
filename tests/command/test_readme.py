"""The README's examples, run as they stand."""

import json
import re
import subprocess

import random_model
from lmwire_command import REPOSITORY

README = (REPOSITORY / "README.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, flags=re.MULTILINE | re.DOTALL)


def test_the_python_example_is_the_file_that_is_tested() -> None:
    assert blocks("python") == [(REPOSITORY / "examples" / "python_chat.py").read_text()]


def test_the_shell_example_answers_as_shown() -> None:
    random_model.write_model(REPOSITORY / ".cache" / "random-tiny")
    run = subprocess.run(["sh", "-c", blocks("sh")[0]], cwd=REPOSITORY, capture_output=True, timeout=60, check=True)
    answered = [json.loads(line) for line in run.stdout.splitlines()]
    shown = [json.loads(line) for line in blocks("json")[0].splitlines()]
    assert [(event["event"], event["id"]) for event in answered[-5:]] == [
        (event["event"], event["id"]) for event in shown
    ]
    assert set(answered[-1]) == set(shown[-1])


def test_what_it_links_to_is_there() -> None:
    for target in re.findall(r"\]\(([^:)]+)\)", README):
        assert (REPOSITORY / target).exists(), target
