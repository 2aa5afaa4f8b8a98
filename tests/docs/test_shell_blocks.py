"""The commands of the pages' shell blocks run as they stand, with a mock worker, or are listed with the reason."""

import json
import os
import re
import shlex
import subprocess
import sysconfig
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from support.http.http_server import Server, served_process
from support.markdown import PAGES, Block, fenced_blocks
from support.models.fake_hub import Hub, running
from support.process.lmwire_command import LMWIRE, REPOSITORY
from support.process.worker_process import SECONDS
from support.shell_blocks import SHELLS, commands_of

BLOCKS = [block for page in PAGES for block in fenced_blocks(page) if block.language in SHELLS]
NOT_RUN = {
    "it installs or tests the checkout": ("make ",),
    "it installs packages, or needs those": ("python3 -m venv ", "pip install ", "uvx ", "npm ", "npx "),
    "tests/docs/test_first_programs.py runs it in a folder of its own": (
        "go mod ",
        "cargo init ",
        "cargo add ",
        "(cd ",
        "cp ../lmwire/clients/c/",
        "cc chat.c ",
        "LMWIRE_WORKER=",
    ),
    "tests/ranks start ranks, here and with a stand-in of ssh": ("lmwire worker --ranks ", "lmwire worker --hosts "),
    "it measures for minutes, and its user has a model that can be split": ("lmwire bench ranks ",),
    "it needs Docker": ("docker ", "LMWIRE_API_KEY=KEY GRAFANA_PASSWORD=SECRET docker "),
    "it needs a Kubernetes cluster": ("kubectl ",),
    "it needs a Mac and a developer's identity": ("find $app/", "codesign ", "ditto ", "xcrun "),
    "it needs VS Code": ("code ",),
    "it compiles Tauri, in minutes": ("cargo run",),
    "it changes the user's services; tests/shell/test_service.py uses stand-ins": ("lmwire service ",),
    "it asks on a terminal; tests/cli/test_rm.py answers": ("lmwire rm ",),
    "it takes minutes; tests/bundle makes one bundle and runs it": ("lmwire bundle ", "build/lmwire/lmwire "),
    "it uses a variable of zsh; tests/shell/test_completion.py runs the script": ("lmwire completion zsh ",),
    "it is an agent; tests/real_clients runs it": ("claude", "aider ", "ANTHROPIC_BASE_URL="),
    "it needs a reranker; tests/http/rerank has one": ("curl http://127.0.0.1:8080/v1/rerank ",),
    "tests/cli/test_readme.py compares its output with the next block": ("printf ",),
}
"""The starts of the commands that do not run here, by reason."""
STARTS = tuple(start for starts in NOT_RUN.values() for start in starts)

# What a person would type is in a pipe already, or is one line.
PRELUDE = """
set -euo pipefail
lmwire() { if [ -p /dev/stdin ]; then command lmwire "$@"; else command lmwire "$@" <<< "Who are you?"; fi; }
set -x
"""
HUB_MODEL = "mlx-community/Qwen3-0.6B-4bit"
RULES = [
    *({"match": {"cmd": "load", "has": [field]}, "reply": {}} for field in ("adapter_path", "generation_config")),
    {"match": {"cmd": "load"}, "reply": {}},
    {"match": {"has": ["format"]}, "reply": {"text": '{"name": "Ada", "age": 36}'}},
    {"match": {"cmd": "chat"}, "reply": {"text": "A worker."}},
]
FILES = {
    ".curlrc": "fail-with-body\nsilent\nshow-error\n",
    ".env": "",
    "keys.txt": "KEY\n",
    "mcp.json": '{"mcpServers": {}}',
    "person.json": '{"type": "object"}',
    "memo.wav": "a recording that the mock does not open",
    "photo.jpg": "a photo that the mock does not open",
    "poet/adapter_config.json": "{}",
    "tools.json": "[]",
    "scenario.json": json.dumps({"rules": RULES}),
    "go-mlx/go/mlxlm/bridge.py": "the file to replace",
}
PROGRAMS = {
    **dict.fromkeys(("claude", "codex", "opencode", "aider"), 'echo "started: $*"'),
    "ssh": 'shift; exec "$@"',
}
"""Stand-ins of programs, as the commands of sh."""


class Place:
    """A folder with the files that the pages mention, and the servers that they start.

    Args:
        folder: The working directory, and the home.
        stack: Ends the servers.
    """

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.folder = folder
        self._stack = stack
        self._servers: dict[str, Server] = {}

    def serve(self, options: str) -> Server:
        """Return the server with these options of `lmwire serve`, on a port of its own."""
        options = re.sub(r"--port \d+", "", options)
        if options not in self._servers:
            server = served_process(*shlex.split(options), directory=self.folder)
            self._servers[options] = self._stack.enter_context(server)
        return self._servers[options]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("home")
    for name, content in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)
    (folder / "keys.txt").chmod(0o600)
    (folder / "bin").mkdir()
    for name, code in PROGRAMS.items():
        (folder / "bin" / name).write_text(f"#!/bin/sh\n{code}\n")
        (folder / "bin" / name).chmod(0o755)
    for name, target in {"lmwire": REPOSITORY, "examples": REPOSITORY / "examples"}.items():
        (folder / name).symlink_to(target)
    subprocess.run(["git", "init", "--quiet", folder], check=True)
    hub = Hub(REPOSITORY / "worker/lmwire_worker/builtin/tiny", HUB_MODEL)
    worker = f"{LMWIRE} mock --scenario {folder / 'scenario.json'}"
    path = [str(folder / "bin"), sysconfig.get_path("scripts"), os.environ["PATH"]]
    with ExitStack() as stack, pytest.MonkeyPatch.context() as environment, running(hub):
        for name, value in {
            "HOME": str(folder),
            "PATH": os.pathsep.join(path),
            "HF_ENDPOINT": hub.url,
            "HF_HOME": str(folder / "hub"),
            "LMWIRE_CHAT_WORKER": worker,
            "LMWIRE_SERVE_WORKER": worker,
            "LMWIRE_SERVE_STRICT": "1",
            "LMWIRE_LAUNCH_MODEL": "builtin:tiny",
        }.items():
            environment.setenv(name, value)
        for name in ("XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "LMWIRE_MODEL", "HF_HUB_OFFLINE"):
            environment.delenv(name, raising=False)
        yield Place(folder, stack)


def is_listed(command: str) -> bool:
    """Return whether NOT_RUN has a command."""
    return command.startswith(STARTS)


@pytest.mark.slow
@pytest.mark.parametrize(
    "block",
    [
        pytest.param(
            block, marks=() if block.page == "README.md" else pytest.mark.nightly, id=f"{block.page}:{block.line}"
        )
        for block in BLOCKS
        if not all(is_listed(command.text) for command in commands_of(block))
    ],
)
def test_the_block_runs(block: Block, place: Place) -> None:
    script, shown, url = "", "", None
    for command, output in commands_of(block):
        if command.startswith("lmwire serve "):
            url = place.serve(command.removeprefix("lmwire serve ")).url
        elif not is_listed(command):
            script += f"{command}\n"
            shown += output
    if address := re.search(r"http://(?:127\.0\.0\.1|studio):\d+", script):
        script = script.replace(address[0], url or place.serve("builtin:tiny").url)
    script = re.sub(r"\bMODEL\b", HUB_MODEL, script)
    done = subprocess.run(
        ["bash", "-c", PRELUDE + script],
        cwd=place.folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    if shown:
        assert done.stdout == shown


@pytest.mark.slow
def test_each_listed_command_is_in_a_page() -> None:
    commands = [command.text for block in BLOCKS for command in commands_of(block)]
    assert [start for start in STARTS if not any(command.startswith(start) for command in commands)] == []


def test_a_block_is_read_into_commands_and_output() -> None:
    text = "$ echo 'two\nlines'   # a comment\ntwo\nlines\n$ printf x |\n  cat\nx\n"
    assert commands_of(Block("a page", 1, "console", text)) == [
        ("echo 'two\nlines'", "two\nlines\n"),
        ("printf x |\n  cat", "x\n"),
    ]
    text = "echo 1 \\\n  2\n\n# alone\necho 3\n"
    assert commands_of(Block("a page", 1, "sh", text)) == [("echo 1 \\\n  2", ""), ("echo 3", "")]
