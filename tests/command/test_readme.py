"""The README's examples, run as they stand."""

import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path

from http_server import served
from lmwire_command import REPOSITORY
from worker_process import SECONDS

README = (REPOSITORY / "README.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, flags=re.MULTILINE | re.DOTALL)


def run(example: str, *arguments: str, **environment: str) -> str:
    command = [sys.executable, f"examples/{example}", "builtin:tiny", *arguments]
    return subprocess.run(
        command,
        cwd=REPOSITORY,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=True,
    ).stdout


def test_the_python_examples_are_the_files_that_are_tested() -> None:
    named = re.findall(r"^<!-- (examples/\w+\.py) -->$", README, flags=re.MULTILINE)
    assert set(named) == {f"examples/{file.name}" for file in (REPOSITORY / "examples").glob("*.py")}
    assert blocks("python") == [(REPOSITORY / name).read_text() for name in named]


def test_the_chat_example_answers() -> None:
    assert re.fullmatch(
        r"\S.*\n\((stop|length), \d+ tokens\)\n", run("python_chat.py", "Who are you?"), flags=re.DOTALL
    )


def test_the_tools_example_calls_and_tells_what_came_of_it() -> None:
    call, told = run("python_tools.py", "What is the weather in Paris?").splitlines()
    assert call == "get_weather({'city': 'Paris'})"
    assert "21 degrees" in told


def test_the_json_example_prints_what_the_schema_asks_for() -> None:
    person = ast.literal_eval(run("python_json.py", "Ada is 36 years old. Give me JSON with name and age."))
    assert (set(person), type(person["name"]), type(person["age"])) == ({"name", "age"}, str, int)


def test_the_images_example_asks_about_groups(tmp_path: Path) -> None:
    images = [str(tmp_path / f"{number}.png") for number in range(1, 6)]
    for image in images:
        Path(image).write_bytes(b"an image; the built-in model is told that there is one")
    told = run("python_images.py", "Who are you?", *images)
    answered = re.fullmatch(f"{', '.join(images[:4])}:\n(.+)\n{images[4]}:\n(.+)\n", told, flags=re.DOTALL)
    assert answered and answered[1].strip() and answered[2].strip()


def test_the_http_example_prints_what_a_server_answers() -> None:
    with served("builtin:tiny") as server:
        assert run("python_http.py", "Who are you?", OPENAI_BASE_URL=f"{server.url}/v1").strip()


def test_the_shell_example_answers_as_shown() -> None:
    command = ["sh", "-c", blocks("sh")[0]]
    lines = subprocess.run(
        command, cwd=REPOSITORY, capture_output=True, timeout=SECONDS, check=True
    ).stdout.splitlines()
    answered = [event for event in map(json.loads, lines) if event["event"] != "progress"]
    shown = [json.loads(line) for line in blocks("json")[0].splitlines()]
    assert [(event["event"], event["id"], set(event)) for event in answered] == [
        (event["event"], event["id"], set(event)) for event in shown
    ]


def test_what_it_links_to_is_there() -> None:
    for target in re.findall(r"\]\(([^:)]+)\)", README):
        assert (REPOSITORY / target).exists(), target
