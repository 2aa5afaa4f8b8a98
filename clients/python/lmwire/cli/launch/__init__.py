"""`lmwire launch`: run a coding agent with the environment and the arguments that point it at a server."""

import contextlib
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from argparse import Namespace
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Final

from ..errors import CliError
from .agents import AGENTS, Agent, Setup
from .server import Server, find_server

_SIGNALLED: Final = 128
"""Base of the exit code of a program that a signal has ended, as shells report it."""


def run(arguments: Namespace) -> int:
    """Run the agent until it ends, and return its exit code."""
    agent = AGENTS[arguments.agent]
    program = shutil.which(agent.program)
    if program is None:
        raise CliError(f"{agent.program} is not on PATH; install it with `{agent.install}`")
    for number in (signal.SIGTERM, signal.SIGHUP):  # a closed terminal sends the second one, which nohup ignores
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _exit_with_cleanup)
    with find_server(arguments.url, arguments.api_key, arguments.model) as server, _scratch_folder() as folder:
        setup = agent.configure(server, folder)
        _report(agent, server, setup)
        return _run_agent([program, *setup.arguments, *arguments.trailing_arguments], setup.environment)


def _exit_with_cleanup(number: int, _: object) -> None:
    sys.exit(_SIGNALLED + number)


@contextlib.contextmanager
def _scratch_folder() -> Generator[Path]:
    with tempfile.TemporaryDirectory(prefix="lmwire-launch-") as folder:
        yield Path(folder)


def _report(agent: Agent, server: Server, setup: Setup) -> None:
    """Print what the agent gets, and warn about a context that is too short for it."""
    model = server.model
    context = f"{model.context_len:,} tokens of context" if model.context_len else "a context of unknown length"
    lines = [f"{agent.name} uses {model.id} ({context}) at {server.url}. Set for this process:"]
    lines += [f"  {name}={shlex.quote(value)}" for name, value in _without_key(setup.environment, server).items()]
    if setup.arguments:
        lines.append(f"  {agent.program} {shlex.join(setup.arguments)}")
    if model.context_len and model.context_len < agent.context_needed:
        lines.append(
            f"{agent.name} needs about {agent.context_needed:,} tokens of context; its requests may be refused. "
            "Serve a model with a longer one"
        )
    print("\n".join(f"lmwire: {line}" if not line.startswith(" ") else line for line in lines), file=sys.stderr)


def _without_key(environment: Mapping[str, str], server: Server) -> dict[str, str]:
    """Return the variables with the API key hidden, since terminals and logs keep what is printed."""
    return {
        name: value.replace(server.api_key, "***") if server.needs_key else value for name, value in environment.items()
    }


def _run_agent(command: list[str], environment: Mapping[str, str]) -> int:
    """Run the agent on this terminal. Ctrl-C is the agent's own matter."""
    with subprocess.Popen(command, env={**os.environ, **environment}) as process:
        previous = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            code = process.wait()
        except BaseException:
            process.terminate()
            raise
        finally:
            signal.signal(signal.SIGINT, previous)
    return code if code >= 0 else _SIGNALLED - code
