"""A bundle on a machine without Python: its environment is empty, and it runs from a folder that it was moved to."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from lmwire import MessageDict, ToolDict, Worker
from lmwire_protocol import __version__
from support.process.lmwire_command import LMWIRE
from support.process.process_waits import child_processes
from support.process.worker_process import SECONDS

pytestmark = pytest.mark.nightly

ANSWER = {
    "type": "object",
    "properties": {"far": {"type": "boolean"}},
    "required": ["far"],
    "additionalProperties": False,
}


@pytest.fixture(scope="module")
def worker(bundle: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Worker]:
    """Yield a worker of the bundle with the built-in model, in an empty folder."""
    folder = tmp_path_factory.mktemp("elsewhere")
    command = ["/usr/bin/env", "-i", "-C", str(folder), "PATH=", str(bundle / "lmwire"), "worker"]
    with Worker(command, start_timeout=SECONDS) as worker:
        worker.load("builtin:tiny")
        yield worker
    assert list(folder.iterdir()) == []


def run(command: list[str], *arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*command, *arguments],
        check=False,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        **options,
    )


def test_hello_has_the_version(worker: Worker) -> None:
    assert worker.hello.worker == f"lmwire {__version__}"
    assert worker.hello.pid == worker.pid, "the program that the host starts is the worker itself"


def test_it_answers_like_the_installed_worker(worker: Worker) -> None:
    messages: list[MessageDict] = [{"role": "user", "content": "Who are you?"}]
    with Worker() as installed:
        installed.load("builtin:tiny")
        expected = installed.chat(messages, max_tokens=20, temperature=0).answer().text
    assert worker.chat(messages, max_tokens=20, temperature=0).answer().text == expected


def test_an_answer_follows_a_schema(worker: Worker) -> None:
    text = (
        worker.chat(
            [{"role": "user", "content": "Is it far?"}],
            format={"type": "json_schema", "schema": ANSWER},
            max_tokens=40,
            reasoning="off",
        )
        .answer()
        .text
    )
    jsonschema.validate(json.loads(text), ANSWER)


def test_a_tool_is_called(worker: Worker) -> None:
    tool: ToolDict = {"type": "function", "function": {"name": "look", "description": "Looks.", "parameters": ANSWER}}
    answer = worker.chat(
        [{"role": "user", "content": "Look!"}], tools=[tool], tool_choice="required", max_tokens=200
    ).answer()
    [call] = answer.tool_calls
    assert call.name == "look"
    jsonschema.validate(call.arguments, ANSWER)


def test_the_template_is_rendered_by_the_bundles_own_program(worker: Worker, bundle: Path) -> None:
    children = [Path(f"/proc/{child}/exe").resolve() for child in child_processes(worker.pid)]
    assert children == [bundle.resolve() / "lmwire"]


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_no_library_of_this_machine_is_loaded_but_the_systems(worker: Worker, bundle: Path) -> None:
    """All other mapped files are the C and C++ libraries, which every Linux has."""
    for process in (worker.pid, *child_processes(worker.pid)):
        mapped = {line.split(maxsplit=5)[5].strip() for line in _lines(f"/proc/{process}/maps") if line.count("/")}
        foreign = {Path(path).name.partition(".so")[0] for path in mapped if not path.startswith(str(bundle))}
        c_library = {"ld-linux-x86-64", "ld-linux-aarch64", "libc", "libdl", "libgcc_s", "libm", "libpthread", "librt"}
        assert foreign <= {*c_library, "libresolv", "libstdc++", "libutil"}


def test_a_chat_is_printed(command: list[str], tmp_path: Path) -> None:
    done = run(command, "chat", "-p", "Who are you?", cwd=tmp_path)
    assert (done.returncode, done.stdout.startswith("I am the tiny model")) == (0, True), done.stderr


def test_modules_of_lmwire_run_in_the_program(command: list[str], tmp_path: Path) -> None:
    """Listing models is a module that the command runs in a process of its own."""
    done = run(command, "models", "--json", cwd=tmp_path)
    assert [model["id"] for model in json.loads(done.stdout)] == ["builtin:tiny"], done.stderr


def test_files_and_multiprocessing_run_in_the_program(command: list[str], tmp_path: Path) -> None:
    """Sounds are decoded by a file, and libraries start processes through multiprocessing."""
    script = tmp_path / "script.py"
    script.write_text(
        "import multiprocessing, os, sys\n"
        "def work(connection):\n"
        "    connection.send(os.environ.copy())\n"
        "if __name__ == '__main__':\n"
        "    context = multiprocessing.get_context('spawn')\n"
        "    ours, theirs = context.Pipe()\n"
        "    process = context.Process(target=work, args=(theirs,))\n"
        "    process.start()\n"
        "    seen = ours.recv()\n"
        "    process.join()\n"
        "    print(sys.argv[1:], process.exitcode, sorted(seen))\n"
    )
    done = run(command, "-P", str(script), "one", "two")
    # Other programs that lmwire starts do not get the bundle's libraries.
    assert done.stdout.split("] ")[0] + "]" == "['one', 'two']", done.stderr
    assert set(done.stdout.split("[")[-1].strip("]\n").replace("'", "").split(", ")) <= {
        "HOME",
        "PATH",
        "SSL_CERT_FILE",
    }


def test_packages_have_their_metadata(command: list[str], tmp_path: Path) -> None:
    script = tmp_path / "versions.py"
    script.write_text(
        "from importlib.metadata import version as v\nprint(v('lmwire'), v('mlx-lm'), v('transformers'))\n"
    )
    from importlib.metadata import version

    expected = f"{version('lmwire')} {version('mlx-lm')} {version('transformers')}\n"
    assert run(command, "-P", str(script)).stdout == expected


@pytest.mark.parametrize(
    ("model", "names"), [("builtin:tiny", ("hello", "c-3-running")), ("mock", ("e-4-sigterm", "e-5-host-gone"))]
)
def test_it_plays_transcripts(command: list[str], model: str, names: tuple[str, ...]) -> None:
    only = [word for name in names for word in ("--only", name)]
    start = [*command, "mock" if model == "mock" else "worker"]
    done = run([LMWIRE, "conformance", "worker", "--model", model, *only, "--", *start])
    assert done.returncode == 0, done.stdout + done.stderr


def test_it_can_be_on_the_path(bundle: Path, tmp_path: Path) -> None:
    """A link on PATH leads to the program, as an installer makes one."""
    (tmp_path / "lmwire").symlink_to(bundle / "lmwire")
    done = run(["lmwire"], "--version", env={"PATH": str(tmp_path)})
    assert done.stdout == f"lmwire {__version__}\n", done.stderr


def test_without_a_library_it_says_what_to_add(command: list[str], tmp_path: Path) -> None:
    done = run(command, "serve", "builtin:tiny")
    assert "lmwire[http]" in done.stderr
    assert "pip install 'lmwire[bundle]'" in run(command, "bundle", str(tmp_path / "another")).stderr


def _lines(path: str) -> list[str]:
    return Path(path).read_text().splitlines()
