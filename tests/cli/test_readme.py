"""The examples of README.md and docs, run as they stand."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from lmwire import __version__
from lmwire.cli.arguments.commands import subcommands_of
from lmwire.cli.command_tree import complete_parser
from lmwire_worker.models.resolve import ALIASES
from support.http.http_server import served_process
from support.markdown import blocks
from support.process.lmwire_command import REPOSITORY
from support.process.worker_process import SECONDS
from support.protocol.foreign_names import without_foreign_names

PAGES = [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").glob("*.md"))]
README = PAGES[0].read_text(encoding="utf-8")


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


def test_the_wheel_to_install_is_the_one_that_make_builds() -> None:
    assert set(re.findall(r"dist/(lmwire-\S+?\.whl)", README)) == {f"lmwire-{__version__}-py3-none-any.whl"}


def test_the_named_aliases_exist() -> None:
    (row,) = re.findall(r"^\| an alias \| (.*?) \|", README, flags=re.MULTILINE)
    assert set(re.findall(r"`(.+?)`", row)) <= set(ALIASES)


def test_every_option_of_the_troubleshooting_exists() -> None:
    rows = README.partition("## Troubleshooting")[2].partition("\n## ")[0]
    commands = subcommands_of(complete_parser())
    known = {option for name in ("chat", "serve") for option in commands[name]._option_string_actions}
    named = set(re.findall(r"`(--[a-z-]+)", rows))
    assert named and named <= known


def test_the_python_examples_are_the_files_that_are_tested() -> None:
    shown: list[str] = []
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        named = re.findall(r"^<!-- (examples/\w+\.py) -->$", text, flags=re.MULTILINE)
        assert blocks("python", text) == [(REPOSITORY / name).read_text(encoding="utf-8") for name in named], page.name
        shown += named
    assert sorted(set(shown)) == sorted(f"examples/{file.name}" for file in (REPOSITORY / "examples").glob("*.py"))


@pytest.mark.slow
def test_the_chat_example_answers() -> None:
    assert re.fullmatch(
        r"\S.*\n\((stop|length), \d+ tokens\)\n", run("python_chat.py", "Who are you?"), flags=re.DOTALL
    )


@pytest.mark.nightly
def test_the_tools_example_calls_and_tells_what_came_of_it() -> None:
    call, answer = run("python_tools.py", "What is the weather in Paris?").splitlines()
    assert call == "get_weather({'city': 'Paris'})"
    assert "21 degrees" in answer


@pytest.mark.nightly
def test_the_json_example_prints_a_value_of_its_type() -> None:
    shown = run("python_json.py", "Ada is 36 years old. Give me JSON with name and age.")
    assert re.fullmatch(r"Person\(name='.{0,40}', age=\d{1,3}\)\n", shown)


@pytest.mark.slow
def test_the_errors_example_treats_each_case() -> None:
    assert run("python_errors.py", "Hi").strip()
    assert "is too long" in run("python_errors.py", " ".join(map(str, range(3000))))


@pytest.mark.nightly
def test_the_asyncio_example_cancels_one_of_two_requests() -> None:
    begun, cancelled, whole = run("python_async.py", "Who are you?").partition(" (cancelled)\n")
    assert begun and cancelled  # on a slow machine the cancelled answer is the longer one
    assert "tiny model" in whole


@pytest.mark.nightly
def test_the_images_example_asks_about_groups(tmp_path: Path) -> None:
    images = [str(tmp_path / f"{number}.png") for number in range(1, 6)]
    for image in images:
        Path(image).write_bytes(b"an image; the built-in model is told that there is one")
    answer = run("python_images.py", "Who are you?", *images)
    answered = re.fullmatch(f"{', '.join(images[:4])}:\n(.+)\n{images[4]}:\n(.+)\n", answer, flags=re.DOTALL)
    assert answered and answered[1].strip() and answered[2].strip()


@pytest.mark.slow
def test_the_http_example_prints_what_a_server_answers() -> None:
    with served_process("builtin:tiny") as server:
        assert run("python_http.py", "Who are you?", OPENAI_BASE_URL=f"{server.url}/v1").strip()


@pytest.mark.slow
def test_the_shell_example_answers_as_shown() -> None:
    (example,) = [block for block in blocks("sh", README) if block.startswith("printf")]
    command = ["sh", "-c", example]
    lines = subprocess.run(
        command, cwd=REPOSITORY, capture_output=True, timeout=SECONDS, check=True
    ).stdout.splitlines()
    answered = [event for event in map(json.loads, lines) if event["event"] != "progress"]
    shown = [json.loads(line) for line in blocks("json", README)[0].splitlines()]
    assert [event.keys() for event in answered] == [event.keys() for event in shown]
    for event in answered + shown:
        for name in ("path", "seed", "timings"):  # those of the one run
            event.pop(name, None)
    assert answered == shown


def test_the_readme_is_short() -> None:
    assert len(README.splitlines()) <= 220


def test_every_page_is_reached_from_the_readme() -> None:
    for page in PAGES[1:]:
        assert f"](docs/{page.name})" in README


def without_others(code: str) -> str:
    """Return code with one line for each command, without comments, variables and the packages that npm installs."""
    return re.sub(r"#.*|\bnpm install .*|\b[A-Z_]+=\S+ ", "", code.replace("\\\n", " "))


def test_the_pages_name_only_commands_and_options_that_there_are() -> None:
    texts = [without_foreign_names(page.read_text(encoding="utf-8")) for page in PAGES]
    typed = [code for text in texts for language in ("sh", "console") for code in blocks(language, text)]
    typed += [code for text in texts for code in re.findall(r"`([^`\n]+)`", text)]
    ours = [line for code in typed for line in re.findall(r"\blmwire \w.*|^--.*", without_others(code))]
    commands = {command for line in ours for command in re.findall(r"^lmwire (bench [a-z]+|\w+)", line)}
    parsers = subcommands_of(complete_parser())
    parsers |= {f"bench {name}": parser for name, parser in subcommands_of(parsers["bench"]).items()}
    assert commands <= parsers.keys()
    shown = "\n".join(parsers[command].format_help() for command in commands)
    flags = "".join(f" --{name} --no-{name}" for name in re.findall(r"--\[no-\]([a-z-]+)", shown))
    known = set(re.findall(r"--[a-z][a-z-]+", shown + flags))
    named = {option for line in ours for option in re.findall(r"(?<![\w-])--[a-z][a-z-]+", line)}
    assert named <= known
