"""`lmwire service`: `lmwire serve` in the background, as a service of this user."""

import subprocess
import sys
from argparse import Namespace
from importlib import import_module
from pathlib import Path

from ..errors import FAILED, OK, USAGE, CliError
from ..private_files import write_private
from . import launchd, systemd
from .manager import Command, ServiceManager


def run(arguments: Namespace) -> int:
    """Do what the command line asks for, and return the exit code."""
    manager = launchd.MANAGER if sys.platform == "darwin" else systemd.MANAGER
    if arguments.action == "install":
        return _install(manager, arguments.trailing_arguments, dry_run=arguments.dry_run)
    if arguments.action == "remove":
        return _remove(manager)
    return _run(manager.status, missing=manager)


def _install(manager: ServiceManager, options: list[str], *, dry_run: bool) -> int:
    _check(options)
    path, content = manager.path(), manager.content([*_program(), "serve", *options])
    if dry_run:
        print(f"# {path}\n{content.decode()}", end="")
        return OK
    path.parent.mkdir(parents=True, exist_ok=True)
    write_private(path, content)  # the options may have an API key
    _run_all(manager.start(path), manager)
    print(f"installed {path}\n{manager.after_install}")
    return OK


def _remove(manager: ServiceManager) -> int:
    path = manager.path()
    if not path.exists():
        raise CliError(f"no service is installed: {path} does not exist")
    for command in manager.stop(path):  # it may not run
        _run(command, missing=manager)
    path.unlink()
    _run_all(manager.reload, manager)
    print(f"removed {path}")
    return OK


def _check(options: list[str]) -> None:
    """Refuse wrong options now: the service would fail in the background. The parser exits with the reason."""
    if "--stop-at-eof" in options:
        raise CliError("--stop-at-eof: a service has no stdin, and would stop at once", USAGE)
    import_module("lmwire_http.cli.parser").make_parser().parse_args(options)


def _program() -> list[str]:
    """Return the command of this very installation: a service manager has another PATH and working directory."""
    script = Path(sys.argv[0]).absolute()
    if script.name == "lmwire" and script.is_file():
        return [str(script)]
    return [sys.executable, "-P", "-c", "import sys; from lmwire.cli import main; sys.exit(main())"]


def _run_all(commands: list[Command], manager: ServiceManager) -> None:
    for command in commands:
        if _run(command, missing=manager) != OK:
            raise CliError(f"`{' '.join(command)}` failed: see the message above")


def _run(command: Command, missing: ServiceManager) -> int:
    try:
        return OK if subprocess.run(command, check=False).returncode == 0 else FAILED
    except FileNotFoundError:
        raise CliError(f"{command[0]} is not on PATH: `lmwire service` needs {missing.name}") from None
