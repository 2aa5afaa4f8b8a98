"""The first program of each client: its page's blocks run as they stand, in a new folder beside a fresh checkout."""

import os
import pty
import re
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from support.checkout import copy_checkout
from support.clients import installation
from support.markdown import Block, fenced_blocks
from support.nightly import nightly_but
from support.process.lmwire_command import LMWIRE, REPOSITORY
from support.process.programs import program, refuse
from support.process.worker_process import SECONDS
from support.protocol.client_programs import fetch

QUICK_START = REPOSITORY / "docs/quick-start.md"
HOSTS = (REPOSITORY / "docs/hosts.md").read_text(encoding="utf-8")
BUILD_S = 600
"""Time for a compiler on a busy machine."""
OUT_OF_REACH = re.compile(r"npm error code (EAI_AGAIN|ECONNREFUSED|ECONNRESET|ENOTCACHED|ENOTFOUND|ETIMEDOUT)")
ONE_TOKEN = '{"rules": [{"match": {"cmd": "load"}, "reply": {}}, {"reply": {"tokens": ["early"], "then": "wait"}}]}'


class Host(NamedTuple):
    """A client's page.

    Args:
        page: The page, in the repository.
        file: The file that has the program.
        find: Returns programs that come first in PATH. Skips the test if a program or a package is missing.
    """

    page: str
    file: str
    find: Callable[[], list[str]]


def find_c() -> list[str]:
    return [program("cc")]


def find_go() -> list[str]:
    return [program("go")]


def find_rust() -> list[str]:
    fetch("clients/rust", ["cargo", "fetch", "--quiet"])
    return []


def find_node() -> list[str]:
    return [program("node"), program("npm")]


def find_node_22() -> list[str]:
    return [str(installation.node() / "node"), program("npm")]


HOSTS_BY_NAME = {
    "c": Host("clients/c/README.md", "chat.c", find_c),
    "go": Host("clients/go/README.md", "main.go", find_go),
    "rust": Host("clients/rust/README.md", "src/main.rs", find_rust),
    "node": Host("clients/node/README.md", "chat.mjs", find_node),
    "node-ai-sdk": Host("clients/node-ai-sdk/README.md", "chat.mjs", find_node_22),
}


class Page(NamedTuple):
    """The first four blocks of a client's page."""

    set_up: Block
    program: Block
    start: Block
    output: Block


def page_of(host: Host) -> Page:
    """Return the blocks of a page, and check that it names the program's file."""
    page = Page(*fenced_blocks(REPOSITORY / host.page)[:4])
    before = (REPOSITORY / host.page).read_text(encoding="utf-8").partition(page.program.text)[0]
    assert before.rpartition("```")[0].endswith(f"`{host.file}`:\n\n")
    return page


class Project:
    """A new folder beside a fresh checkout, with the program of a page."""

    def __init__(self, host: Host, folder: Path) -> None:
        self._page = page_of(host)
        programs = folder / "bin"
        programs.mkdir()
        for found in host.find():
            (programs / Path(found).name).symlink_to(found)
        self._environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("LMWIRE_", "GOFLAGS"))},
            "PATH": os.pathsep.join([str(programs), os.environ["PATH"]]),
            # What is fetched already suffices. Without it, npm alone asks its registry, as its other tests do.
            "GOPROXY": "off",
            "CARGO_NET_OFFLINE": "true",
            "npm_config_prefer_offline": "true",
            # The dependencies are compiled once for all runs.
            "CARGO_TARGET_DIR": str(REPOSITORY / ".cache/rust"),
            "CARGO_PROFILE_DEV_DEBUG": "0",
        }
        self._worker = folder / "lmwire/.venv/bin/lmwire"
        self._folder = folder / "hello"
        copy_checkout(folder / "lmwire", "Cargo.toml", "clients", "examples")
        self._worker.parent.mkdir(parents=True)
        self._folder.mkdir()
        done = self._run(self._page.set_up)
        if found := OUT_OF_REACH.search(done.stderr):
            refuse(f"npm cannot fetch the packages: {found[1]}")
        assert done.returncode == 0, done.stderr
        (self._folder / host.file).write_text(self._page.program.text, encoding="utf-8")

    @property
    def output(self) -> str:
        """The output that the page shows."""
        return self._page.output.text

    def put_worker(self, script: str) -> None:
        """Make a script the checkout's `lmwire`."""
        self._worker.write_text(f"#!/bin/sh\n{script}\n")
        self._worker.chmod(0o755)

    def start(self) -> subprocess.CompletedProcess[str]:
        """Start the program as the page does, and wait for its end."""
        return self._run(self._page.start)

    @contextmanager
    def started_on_terminal(self) -> Iterator[int]:
        """Start the program on a terminal. Yield the terminal's other end, and kill the program afterwards."""
        ours, theirs = pty.openpty()
        process = subprocess.Popen(
            ["bash", "-c", self._page.start.text],
            cwd=self._folder,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=theirs,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        os.close(theirs)
        try:
            yield ours
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(SECONDS)
            os.close(ours)

    def _run(self, block: Block) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", "-euo", "pipefail", "-c", block.text],
            cwd=self._folder,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=BUILD_S,
            check=False,
        )


# For each commit the one that builds at once. `make rust` compiles its page's program, and the others' are short.
@pytest.fixture(scope="module", params=nightly_but({"go"}, HOSTS_BY_NAME))
def project(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Project:
    return Project(HOSTS_BY_NAME[request.param], tmp_path_factory.mktemp(request.param))


@pytest.mark.slow
def test_the_program_prints_what_its_page_shows(project: Project) -> None:
    project.put_worker(f'exec {LMWIRE} "$@"')
    done = project.start()
    assert (done.returncode, done.stdout) == (0, project.output), done.stderr


@pytest.mark.slow
def test_the_program_shows_a_token_before_the_answer_ends(project: Project, tmp_path: Path) -> None:
    (tmp_path / "scenario.json").write_text(ONE_TOKEN)
    project.put_worker(f"exec {LMWIRE} mock --scenario {tmp_path}/scenario.json")
    with project.started_on_terminal() as terminal:
        shown = b""
        while b"early" not in shown:
            shown += os.read(terminal, 1024)


@pytest.mark.slow
def test_the_program_reports_a_worker_that_does_not_start_in_a_sentence(project: Project) -> None:
    project.put_worker("echo 'lmwire: install msgspec' >&2; exit 1")
    done = project.start()
    assert done.returncode != 0
    # Node quotes the line that throws, with spaces before it, and adds where that is.
    (sentence,) = re.findall(
        r"^\S.*(?:does not start as a worker|worker cannot be used): .*", done.stderr, re.MULTILINE
    )
    assert "{" not in sentence


@pytest.mark.parametrize(("section", "name"), [("C", "c"), ("Go", "go"), ("Rust", "rust"), ("Node", "node")])
def test_the_quick_start_has_the_blocks_of_the_clients_own_page(section: str, name: str) -> None:
    text = QUICK_START.read_text(encoding="utf-8").partition(f"## {section}\n")[2].partition("\n## ")[0]
    page = page_of(HOSTS_BY_NAME[name])
    assert re.findall(r"^```\w+\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL) == [
        block.text for block in page[:3]
    ]


@pytest.mark.parametrize("host", HOSTS_BY_NAME.values(), ids=HOSTS_BY_NAME)
def test_the_page_for_hosts_has_the_lines_that_install_a_client(host: Host) -> None:
    lines = [line for line in page_of(host).set_up.text.splitlines() if "../lmwire" in line]
    assert [line for line in lines if f"`{line.partition('  ')[0]}`" not in HOSTS] == []
