"""Coding agents, each on a task of one turn in a repository of its own."""

import json
import os
import subprocess
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from random_model import write_model
from support.clients.installation import node_packages, python_environment
from support.clients.relay import Relay, relayed
from support.clients.running import Outside, client_environment, run_client
from support.http.http_server import MOCK, served_process
from support.process.lmwire_command import LMWIRE

TASK: Final = "Write hello.txt with the word hi."
"""Task of an agent."""
DONE: Final = "Done."
"""A scripted worker's answer to the result of the tool."""


@dataclass
class Task:
    """A finished task.

    Args:
        output: What the agent printed.
        folder: Its repository.
    """

    output: str
    folder: Path

    def written(self) -> str | None:
        """Return the content of hello.txt, or None if the agent has not written it."""
        file = self.folder / "hello.txt"
        return file.read_text() if file.exists() else None


def finish_task(
    agent: str,
    arguments: Sequence[str],
    relay: Relay,
    outside: Outside,
    folder: Path,
    settings: Mapping[str, str] | None = None,
) -> Task:
    """Run an agent through `lmwire launch` until it has finished its task.

    Args:
        agent: Name of the agent, as `lmwire launch` takes it.
        arguments: The agent's own arguments.
        relay: The server.
        outside: What its connections to other machines reach.
        folder: Receives its home and its repository.
        settings: Content of files in its home that keep it from other machines, by path.
    """
    home, repository = folder / "home", folder / "repository"
    for path, content in {".gitconfig": "[user]\nname = A\nemail = a@example.com\n", **(settings or {})}.items():
        (home / path).parent.mkdir(parents=True, exist_ok=True)
        (home / path).write_text(content)
    environment = client_environment(home, outside)
    programs = python_environment("aider") if agent == "aider" else node_packages() / "node_modules/.bin"
    environment["PATH"] = os.pathsep.join((str(programs), environment["PATH"]))
    subprocess.run(["git", "init", "--quiet", repository], env=environment, check=True)
    done = run_client([LMWIRE, "launch", agent, "--url", relay.url, "--", *arguments], environment, repository)
    return Task(done.stdout, repository)


@contextmanager
def calling_server(folder: Path, tool: str, arguments: Mapping[str, str]) -> Generator[Relay]:
    """Yield a server whose worker calls a tool in its first answer to a request with tools.

    Args:
        folder: Receives the scenario.
        tool: Name of the agent's tool.
        arguments: The call's arguments.
    """
    call = {"name": tool, "arguments": dict(arguments)}
    first = {"match": {"has": ["tools"]}, "times": 1, "reply": {"tool_calls": [call]}}
    with scenario_server(folder, [first, {"reply": {"text": DONE}}]) as relay:
        yield relay


@contextmanager
def scenario_server(folder: Path, rules: Sequence[Any]) -> Generator[Relay]:
    """Yield a server with a mock worker that follows the rules of a scenario.

    Args:
        folder: Receives the scenario.
        rules: As worker/MOCK.md describes them.
    """
    file = folder / "scenario.json"
    file.write_text(json.dumps({"rules": rules}))
    with served_process("mock", "--worker", f"{MOCK} --scenario {file}") as server, relayed(server.url) as relay:
        yield relay


def write_long_model(folder: Path) -> Path:
    """Write a model of random weights that reads the long prompts of agents quickly, and return its folder.

    It ends its turn after few tokens, so that the agent takes its words for the answer.

    Args:
        folder: Receives the model.
    """
    small: dict[str, Any] = {"num_hidden_layers": 1, "hidden_size": 16, "intermediate_size": 16, "head_dim": 8}
    small |= {"num_attention_heads": 1, "num_key_value_heads": 1, "max_position_embeddings": 131_072}
    return write_model(folder, "llama", end_scale=20, **small)
