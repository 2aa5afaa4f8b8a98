"""`python -P -m lmwire_worker`: a worker on this process's pipes."""

import os
import sys

from .process.exits import exit_on_signals

TYPE_CHECKING = False  # `typing` is imported only after the signals are handled
if TYPE_CHECKING:
    from pathlib import Path
    from typing import NoReturn

    from .engine.load_context import DiskCacheOptions
    from .media import MediaPolicy
    from .mock.plan import Plan
    from .process.stderr_log import Log
    from .ranks import LeaderRanks

USAGE = """usage: python -P -m lmwire_worker [--memory-limit BYTES] [--cache-dir DIR [--cache-disk-bytes BYTES]]
                                  [--media-dir DIR]... [--[no-]media-urls] [--template-dir DIR]
                                  [--model NAME] [--[no-]process-group]
                                  [--ranks N | --hosts FILE] [--rank-backend NAME]
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
  --ranks N             split each model over N processes of this machine, each on a GPU of its own if it has several
  --hosts FILE          split each model over the machines of a hosts file, JSON as for mlx.launch, by ssh
  --rank-backend NAME   how the processes exchange parts of a step: ring (TCP), nccl (CUDA) or jaccl (Thunderbolt);
                        default: nccl on CUDA, ring elsewhere
  --mock                run a worker without a model, to test hosts; see --mock --help
  --help                print this help and exit
  --version             print the version and exit
"""

NUMBERS = ("--memory-limit", "--cache-disk-bytes")
DIRECTORIES = ("--cache-dir", "--media-dir", "--template-dir")
_EXISTING_DIRECTORIES = ("--media-dir", "--template-dir")
MODEL = "--model"
MEDIA_URLS = ("--media-urls", "--no-media-urls")
PROCESS_GROUP = ("--process-group", "--no-process-group")
_RANKS = ("--ranks", "--hosts", "--rank-backend")
_OPTIONS = (*NUMBERS, *DIRECTORIES, MODEL, *MEDIA_URLS, *PROCESS_GROUP, *_RANKS)

EXIT_USAGE = 64
EXIT_ENGINE_LOST = 70
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
    if [argument for argument in arguments if argument in PROCESS_GROUP][-1:] == ["--process-group"]:
        _lead_process_group()
    arguments = [argument for argument in arguments if argument not in PROCESS_GROUP]
    if arguments == ["--follow"]:
        from .follower import main as follow

        follow()
    if arguments[:1] == ["--mock"]:
        from .mock.plan import plan

        _serve(plan(arguments[1:]))
    _serve(options=read_options(arguments))


def _lead_process_group() -> None:
    """Leave the host's process group, so that a signal to the worker's reaches the worker and its children alone."""
    if os.getpgrp() != os.getpid():
        os.setpgid(0, 0)


def read_options(arguments: list[str]) -> dict[str, list[str]]:
    """Return the values of each option on the command line."""
    options: dict[str, list[str]] = {}
    rest = iter(arguments)
    for name in rest:
        if name not in _OPTIONS:
            _refuse_unrecognized(name)
        if name in MEDIA_URLS:
            options["--media-urls"] = [name]  # the last form wins
            continue
        if name in options and name != "--media-dir":
            _refuse(f"{name} is given twice")
        options.setdefault(name, []).append(_value(name, next(rest, "")))
    if "--cache-disk-bytes" in options and "--cache-dir" not in options:
        _refuse("--cache-disk-bytes needs a --cache-dir")
    _check_ranks(options)
    return options


def _check_ranks(options: dict[str, list[str]]) -> None:
    if "--ranks" in options and "--hosts" in options:
        _refuse("--ranks and --hosts exclude one another: a hosts file has a line for each rank")
    has_ranks = "--ranks" in options or "--hosts" in options
    if "--rank-backend" in options and not has_ranks:
        _refuse("--rank-backend needs --ranks or --hosts")
    if has_ranks and "--cache-dir" in options:
        _refuse("--cache-dir: a model that is split over ranks has no cache on disk; leave it out")


def _value(name: str, value: str) -> str:
    if name in DIRECTORIES and not value:
        _refuse(f"{name} needs a directory")
    if name == MODEL and not value:
        _refuse(f"{name} needs a model's name or folder")
    if name in NUMBERS and not (value.isascii() and value.isdigit() and int(value) > 0):
        _refuse(f"{name} needs a number of bytes, above 0")
    if name == "--ranks" and not (value.isascii() and value.isdigit() and 2 <= int(value) <= 64):
        _refuse("--ranks needs a number from 2 to 64")
    if name == "--hosts" and not os.path.isfile(os.path.expanduser(value)):
        _refuse(f"--hosts {value} is not a file")
    if name == "--rank-backend" and value not in ("ring", "nccl", "jaccl"):
        _refuse("--rank-backend needs ring, nccl or jaccl")
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
    from lmwire_protocol.imports import import_msgspec, uncollected

    from .process import stdio
    from .process.stderr_log import Log

    try:
        io = stdio.isolate_stdio()
    except OSError:
        sys.exit(EXIT_STDOUT)
    with uncollected():
        import_msgspec()
        from .worker import WorkerProcess

    if mock:
        WorkerProcess(mock.around(io), Log(), mock.engine, mock.default_model).run()
    with uncollected():
        from .loading.model_loader import MlxModelLoader

    options, log = options or {}, Log()
    default_model = options.get(MODEL, [os.environ.get("LMWIRE_MODEL")])[0] or None
    settings = read_settings(options, log)
    if "--ranks" in options or "--hosts" in options:
        from lmwire_protocol.events import RankGroup

        from .ranks import RankedLoader

        ranks = _ranks(options)
        loader = RankedLoader(MlxModelLoader(*settings, owns_process=True, ranks=ranks), ranks)
        worker = WorkerProcess(io, log, loader, default_model, RankGroup(ranks.size, ranks.backend))
        ranks.fail = lambda problem: worker.end(problem, EXIT_ENGINE_LOST)
        worker.run()
    WorkerProcess(io, log, MlxModelLoader(*settings, owns_process=True), default_model).run()


def _ranks(options: dict[str, list[str]]) -> "LeaderRanks":
    from .ranks import LeaderRanks
    from .ranks.hosts import InvalidHosts, default_backend, local_hosts, read_hosts

    try:
        file = options.get("--hosts")
        hosts = read_hosts(_folder(file[0])) if file else local_hosts(int(options["--ranks"][0]))
    except InvalidHosts as error:
        _refuse(f"--hosts: {error}")
    limit, templates = options.get("--memory-limit"), options.get("--template-dir")
    followed = {
        "memory_limit": int(limit[0]) if limit else None,
        "template_dir": str(_folder(templates[0])) if templates else None,
    }
    return LeaderRanks(hosts, options.get("--rank-backend", [default_backend()])[0], followed)


def read_settings(
    options: dict[str, list[str]], log: "Log"
) -> "tuple[int | None, DiskCacheOptions | None, MediaPolicy, Path | None]":
    """Return the settings of the model loader that the options give."""
    from .engine.load_context import DEFAULT_DISK_BYTES, DiskCacheOptions
    from .media import MediaPolicy

    limit, disk = (int(options[name][0]) if name in options else None for name in NUMBERS)
    urls = options.get("--media-urls") == ["--media-urls"]
    media = MediaPolicy(tuple(map(_folder, options.get("--media-dir", []))), urls=urls)
    templates, cache = (
        _folder(options[name][0]) if name in options else None for name in ("--template-dir", "--cache-dir")
    )
    disk_cache = DiskCacheOptions(cache, disk or DEFAULT_DISK_BYTES, log) if cache else None
    return limit, disk_cache, media, templates


def _folder(name: str) -> "Path":
    from pathlib import Path

    return Path(name).expanduser().absolute()


if __name__ == "__main__":
    main()
