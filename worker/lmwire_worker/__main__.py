"""`python -P -m lmwire_worker`: a worker on this process's pipes."""

import os
import sys

from .process.signals import exit_on_signals

TYPE_CHECKING = False  # `typing` is imported only after the signals are handled
if TYPE_CHECKING:
    from pathlib import Path
    from typing import NoReturn

    from .generation.disk_cache_options import DiskCacheOptions
    from .media import MediaPolicy
    from .mock.plan import Plan
    from .process.stderr_log import Log

USAGE = """usage: python -P -m lmwire_worker [--memory-limit BYTES] [--cache-dir DIR [--cache-disk-bytes BYTES]]
                                  [--media-dir DIR]... [--[no-]media-urls] [--template-dir DIR]
                                  [--model NAME] [--[no-]process-group]
       python -P -m lmwire_worker --mock ...

Reads commands as JSON Lines on stdin and writes events as JSON Lines on stdout: PROTOCOL.md describes them.

  --memory-limit BYTES  memory budget of a model, its caches and its requests; default: nine tenths of the
                        device's memory
  --cache-dir DIR       store the prefix cache in this directory as well, for later workers; default: memory
                        only. Anyone who can read the files can read the conversations
  --cache-disk-bytes BYTES
                        maximum size of the cache in --cache-dir; default: 16 GiB. The least recently used
                        entries are removed first
  --media-dir DIR       allow requests to name image and sound files in this directory; repeatable.
                        Without it, requests must contain their media
  --[no-]media-urls     allow requests to name http and https URLs of images and sounds on public hosts
  --template-dir DIR    a directory of chat templates, NAME.jinja, that a load may name (chat_template_name)
  --model NAME          the model of a load that names none; default: $LMWIRE_MODEL, or none
  --[no-]process-group  lead a process group of its own, for hosts that cannot start one; also with --mock
  --mock                run a worker without a model, to test hosts; see --mock --help
  --help                print this help and exit
  --version             print the version and exit
"""

_NUMBERS = ("--memory-limit", "--cache-disk-bytes")
_DIRECTORIES = ("--cache-dir", "--media-dir", "--template-dir")
_EXISTING_DIRECTORIES = ("--media-dir", "--template-dir")
_MODEL = "--model"
_MEDIA_URLS = ("--media-urls", "--no-media-urls")
_PROCESS_GROUP = ("--process-group", "--no-process-group")
_OPTIONS = (*_NUMBERS, *_DIRECTORIES, _MODEL, *_MEDIA_URLS, *_PROCESS_GROUP)

EXIT_USAGE = 64
EXIT_STDOUT = 74


def main(arguments: list[str] | None = None) -> None:
    """Run a worker, and do not return.

    Args:
        arguments: The command line; None for the process's.
    """
    exit_on_signals()
    arguments = sys.argv[1:] if arguments is None else arguments
    if arguments in (["--help"], ["-h"]):
        print(USAGE, end="")
        sys.exit(0)
    if arguments == ["--version"]:
        from lmwire_protocol import __version__

        print(f"lmwire {__version__}")
        sys.exit(0)
    if [argument for argument in arguments if argument in _PROCESS_GROUP][-1:] == ["--process-group"]:
        _lead_process_group()
    arguments = [argument for argument in arguments if argument not in _PROCESS_GROUP]
    if arguments[:1] == ["--mock"]:
        from .mock.plan import plan

        _serve(plan(arguments[1:]))
    _serve(options=_read_options(arguments))


def _lead_process_group() -> None:
    """Leave the host's process group, so that a signal to the worker's reaches the worker and its children alone."""
    if os.getpgrp() != os.getpid():
        os.setpgid(0, 0)


def _read_options(arguments: list[str]) -> dict[str, list[str]]:
    """Return the values of each option on the command line."""
    options: dict[str, list[str]] = {}
    rest = iter(arguments)
    for name in rest:
        if name not in _OPTIONS:
            _refuse_unrecognized(name)
        if name in _MEDIA_URLS:
            options["--media-urls"] = [name]  # the last form wins
            continue
        if name in options and name != "--media-dir":
            _refuse(f"{name} is given twice")
        options.setdefault(name, []).append(_value(name, next(rest, "")))
    if "--cache-disk-bytes" in options and "--cache-dir" not in options:
        _refuse("--cache-disk-bytes needs a --cache-dir")
    return options


def _value(name: str, value: str) -> str:
    if name in _DIRECTORIES and not value:
        _refuse(f"{name} needs a directory")
    if name == _MODEL and not value:
        _refuse(f"{name} needs a model's name or folder")
    if name in _NUMBERS and not (value.isascii() and value.isdigit() and int(value) > 0):
        _refuse(f"{name} needs a number of bytes, above 0")
    if name in _EXISTING_DIRECTORIES and not os.path.isdir(os.path.expanduser(value)):
        _refuse(f"{name} {value} is not a directory")
    return value


def _refuse_unrecognized(argument: str) -> "NoReturn":
    from lmwire_protocol.command_line import unrecognized

    _refuse(unrecognized([argument], (*_OPTIONS, "--mock", "--help", "--version")))


def _refuse(problem: str) -> "NoReturn":
    print(f"lmwire worker: {problem}\nSee lmwire worker --help", file=sys.stderr)
    sys.exit(EXIT_USAGE)


def _serve(mock: "Plan | None" = None, options: dict[str, list[str]] | None = None) -> None:
    from .process import stdio
    from .process.stderr_log import Log

    try:
        io = stdio.isolate_stdio()
    except OSError:
        sys.exit(EXIT_STDOUT)
    from .worker import WorkerProcess

    if mock:
        WorkerProcess(mock.around(io), Log(), mock.engine, mock.default_model).run()
    from .loading.model_loader import MlxModelLoader

    options, log = options or {}, Log()
    loader = MlxModelLoader(*_settings(options, log), owns_process=True)
    WorkerProcess(io, log, loader, options.get(_MODEL, [os.environ.get("LMWIRE_MODEL")])[0] or None).run()


def _settings(
    options: dict[str, list[str]], log: "Log"
) -> "tuple[int | None, DiskCacheOptions | None, MediaPolicy, Path | None]":
    from .generation.disk_cache_options import DEFAULT_DISK_BYTES, DiskCacheOptions
    from .media import MediaPolicy

    limit, disk = (int(options[name][0]) if name in options else None for name in _NUMBERS)
    urls = options.get("--media-urls") == ["--media-urls"]
    media = MediaPolicy(tuple(map(_folder, options.get("--media-dir", []))), urls=urls)
    templates, cache = (
        _folder(options[name][0]) if name in options else None for name in ("--template-dir", "--cache-dir")
    )
    return limit, cache and DiskCacheOptions(cache, disk or DEFAULT_DISK_BYTES, log), media, templates


def _folder(name: str) -> "Path":
    from pathlib import Path

    return Path(name).expanduser().absolute()


if __name__ == "__main__":
    main()
