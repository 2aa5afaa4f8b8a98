"""`lmwire launch` with programs that stand in for the agents and send real requests to real servers."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent
from threading import Thread
from typing import Any
from urllib.request import urlopen

import pytest

from random_model import write_model
from support.http.http_server import MOCK, served_process, wait_until
from support.models.fake_hub import Hub, running
from support.process import lmwire_command
from support.process.lmwire_command import Terminal, lmwire
from support.process.worker_process import SECONDS

pytestmark = pytest.mark.slow

ASK = dedent("""\
    import json, os, sys, urllib.request
    base = os.environ["ANTHROPIC_BASE_URL"]
    messages = [{"role": "user", "content": "Hi"}]
    question = {"model": os.environ["ANTHROPIC_MODEL"], "max_tokens": 4, "messages": messages}
    headers = {"content-type": "application/json", "x-api-key": os.environ["ANTHROPIC_AUTH_TOKEN"]}
    request = urllib.request.Request(base + "/v1/messages", json.dumps(question).encode(), headers)
    answer = json.load(urllib.request.urlopen(request))
    json.dump({"base": base, "argv": sys.argv[1:], "answer": answer}, sys.stdout)
    sys.exit(7)
    """)
"""A program that asks the model one question, prints the answer and what it was given, and exits with 7."""
HANG = dedent("""\
    import os, sys
    print(os.environ["ANTHROPIC_BASE_URL"], flush=True)
    sys.stdin.read()
    """)


ELSEWHERE = dedent("""\
    import sys
    from lmwire.cli import main
    from lmwire.cli.arguments import subcommands
    subcommands.DEFAULT_URL = {url!r}
    sys.exit(main())
    """)
"""The command `lmwire` with another default address."""


@pytest.fixture(autouse=True)
def command(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Run a command whose default address is that of no server: this process holds its port, and does not listen."""
    folder = tmp_path_factory.mktemp("command")
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        program = install(folder, "lmwire", ELSEWHERE.format(url=f"http://127.0.0.1:{held.getsockname()[1]}"))
        monkeypatch.setattr(lmwire_command, "LMWIRE", str(program))
        yield program


@pytest.fixture
def path(tmp_path: Path) -> str:
    """Return a PATH whose only program is `claude`, which asks one question."""
    return str(install(tmp_path, "claude", ASK).parent)


def install(folder: Path, name: str, code: str) -> Path:
    """Write a program, and return its path."""
    program = folder / name
    program.write_text(f"#!{sys.executable}\n{code}")
    program.chmod(0o755)
    return program


def is_gone(url: str) -> bool:
    """Return whether no server answers at an address. One that ends just then resets the connection."""
    try:
        urlopen(f"{url}/health", timeout=SECONDS).close()
    except OSError:
        return True
    return False


def test_an_agent_uses_a_server_that_is_started_for_it(path: str) -> None:
    options = ("--model", "builtin:tiny", "--", "-p", "--model", "x")
    launched = lmwire("launch", "claude", *options, PATH=path, LMWIRE_API_KEY="a-key-of-the-users-own-server-00")
    assert launched.returncode == 7, launched.stderr
    seen: dict[str, Any] = json.loads(launched.stdout)
    assert seen["argv"] == ["-p", "--model", "x"]
    assert seen["answer"]["content"]
    assert "ANTHROPIC_MODEL=builtin:tiny" in launched.stderr
    assert "2,048 tokens of context" in launched.stderr
    assert "needs about" in launched.stderr
    assert is_gone(seen["base"])


def test_an_agent_uses_a_running_server_and_the_server_stays(path: str) -> None:
    with served_process("mock", "--worker", MOCK) as server:
        launched = lmwire("launch", "claude", "--url", server.url, PATH=path)
        assert launched.returncode == 7, launched.stderr
        assert json.loads(launched.stdout)["base"] == server.url
        assert not is_gone(server.url)


def test_a_server_at_the_default_address_is_found(path: str, command: Path) -> None:
    with served_process("mock", "--worker", MOCK) as server:
        command.write_text(f"#!{sys.executable}\n{ELSEWHERE.format(url=server.url)}")
        launched = lmwire("launch", "claude", PATH=path)
    assert launched.returncode == 7, launched.stderr
    assert json.loads(launched.stdout)["base"] == server.url


def test_another_program_at_an_address_is_no_server(path: str, command: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        command.write_text(f"#!{sys.executable}\n{ELSEWHERE.format(url=url)}")
        Thread(target=greet, args=(listening, 2), daemon=True).start()
        named, default = lmwire("launch", "claude", "--url", url, PATH=path), lmwire("launch", "claude", PATH=path)
    assert "does not list its models" in named.stderr
    assert f"no server of yours runs at {url}" in default.stderr


def greet(listening: socket.socket, clients: int) -> None:
    """Answer clients with a line that is not of HTTP."""
    for _ in range(clients):
        client, _ = listening.accept()
        with client:
            client.recv(65536)
            client.sendall(b"SSH-2.0-OpenSSH\r\n")


def test_an_api_key_reaches_the_agent_and_is_not_printed(path: str, tmp_path: Path) -> None:
    keys = tmp_path / "keys.txt"
    keys.write_text("a-secret-key-of-32-characters-000")
    keys.chmod(0o600)
    with served_process("mock", "--worker", MOCK, "--api-key-file", str(keys)) as server:
        without = lmwire("launch", "claude", "--url", server.url, PATH=path)
        assert without.returncode == 1
        assert "needs an API key" in without.stderr
        launched = lmwire("launch", "claude", "--url", server.url, PATH=path, LMWIRE_API_KEY=keys.read_text())
    assert launched.returncode == 7, launched.stderr
    assert keys.read_text() not in launched.stderr


def test_a_model_is_chosen_by_name_and_needs_one_among_several(path: str) -> None:
    with served_process("mock", "mock:step_ms=1", "--worker", MOCK) as server:
        assert "choose one with --model" in lmwire("launch", "claude", "--url", server.url, PATH=path).stderr
        unknown = lmwire("launch", "claude", "--url", server.url, "--model", "third", PATH=path)
        assert "does not serve 'third'; it serves: " in unknown.stderr
        chosen = lmwire("launch", "claude", "--url", server.url, "--model", "mock:step_ms=1", PATH=path)
    assert json.loads(chosen.stdout)["answer"]["model"] == "mock:step_ms=1"


def test_a_missing_agent_or_server_is_named_with_the_remedy(path: str) -> None:
    assert "npm install --global @openai/codex" in lmwire("launch", "codex", PATH=path).stderr
    nowhere = lmwire("launch", "claude", "--url", "http://127.0.0.1:1", PATH=path)
    assert nowhere.returncode == 1
    assert "no server answers at http://127.0.0.1:1" in nowhere.stderr
    assert "is not an address" in lmwire("launch", "claude", "--url", "ftp://x", PATH=path).stderr


def test_a_server_that_cannot_start_shows_why(path: str) -> None:
    launched = lmwire("launch", "claude", "--model", "./no-such-model", PATH=path)
    assert launched.returncode == 1
    assert "no-such-model" in launched.stderr
    assert "the server could not start" in launched.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_the_started_server_ends_with_the_command(tmp_path: Path, command: Path, number: signal.Signals) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir(mode=0o700)
    handler = signal.signal(signal.SIGHUP, signal.SIG_DFL)  # nohup may have these tests ignore it
    process = subprocess.Popen(
        [command, "launch", "claude", "--model", "builtin:tiny"],
        env={**os.environ, "PATH": str(install(tmp_path, "claude", HANG).parent), "TMPDIR": str(scratch)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    signal.signal(signal.SIGHUP, handler)
    with process:
        assert process.stdout
        url = process.stdout.readline().decode().strip()
        assert not is_gone(url)
        process.send_signal(number)
        assert process.wait(SECONDS) == (-number if number == signal.SIGKILL else 128 + number)
        wait_until(lambda: is_gone(url), "the server still runs")
    assert number == signal.SIGKILL or not [*scratch.glob("lmwire-*")]


def test_a_load_has_a_bar_on_a_terminal_until_the_agent_starts(path: str, tmp_path: Path) -> None:
    with running(Hub(write_model(tmp_path / "served"))) as hub:
        hub.stall = "model.safetensors"
        settings = {"HF_ENDPOINT": hub.url, "HF_HOME": str(tmp_path / "home"), "HF_HUB_OFFLINE": "0", "PATH": path}
        with Terminal("launch", "claude", "--model", hub.name, **settings) as terminal:
            shown = terminal.read_until("Downloading")
            assert hub.half_sent.wait(SECONDS)
            shown += terminal.read_until("kB")
            hub.go_on.set()
            shown += terminal.read_until(f"ANTHROPIC_MODEL={hub.name}")
            assert terminal.wait() == 7
    assert "lmwire serves on " in shown
    assert "info downloading" not in shown
