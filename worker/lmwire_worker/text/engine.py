"""Opens text lanes. Imports no model library by itself; see `prepare`."""

import contextlib
import gc
import importlib.util
import resource
import sys
from collections.abc import Callable, Iterator
from typing import Final

from lmwire_protocol import FEATURES, Load, RequestError

from ..lane import Lane, LoadCancelled, Report

OPEN_FILES: Final = 2048
"""Large models have many files."""


class TextEngine:
    """See `lmwire_worker.lane.Engine`."""

    def __init__(self) -> None:
        self.names = ["mlx_lm"] if importlib.util.find_spec("mlx_lm") else []
        self.features = [
            name for name in FEATURES if not name.endswith(".format") or importlib.util.find_spec("llguidance")
        ]
        self._missing: str | None = None

    def prepare(self) -> None:
        if not self.names:
            self._missing = "mlx-lm is not installed"
            return
        try:
            with _own_file_limit():
                import mlx_lm  # noqa: F401
        except (ImportError, OSError) as error:  # mlx itself comes apart from its Linux backends
            self._missing = f"mlx-lm cannot be imported ({error})"

    def open(self, request: Load, report: Report, replace: Callable[[], None]) -> Lane:
        if self._missing is not None:
            raise RequestError("unsupported", f"{self._missing}; {_installation()}")
        try:
            return _open(request, report, replace)
        except (RequestError, LoadCancelled) as error:
            failure = error
        except Exception as error:  # a model's code may fail at anything, and the worker outlives it
            failure = RequestError("engine_error", f"{request.path} does not load: {type(error).__name__}: {error}")
        # The traceback holds half a model through its frames' variables, so it ends here.
        failure.__traceback__ = failure.__context__ = failure.__cause__ = None
        _release()
        raise failure


def _open(request: Load, report: Report, replace: Callable[[], None]) -> Lane:
    from .checks import check_folder
    from .lane import TextLane
    from .loading import check_architecture, describe, load_tokenizer, open_network, read_weights
    from .resolve import find_folder
    from .warm_up import warm_up

    report("resolve", 0, None, "steps")
    folder = find_folder(request.path, report)
    config = check_folder(folder, trust_remote_code=request.trust_remote_code)
    check_architecture(config)
    tokenizer = load_tokenizer(folder, config, trust_remote_code=request.trust_remote_code)
    network, config = open_network(folder, trust_remote_code=request.trust_remote_code)
    replace()
    read_weights(network, folder, report)
    lane = TextLane(network, tokenizer, describe(folder, config, network, tokenizer))
    warm_up(lane, report)
    return lane


def _release() -> None:
    gc.collect()  # modules refer to one another in circles
    if "mlx.core" in sys.modules:
        import mlx.core as mx

        mx.clear_cache()


def _installation() -> str:
    extra = "worker" if sys.platform == "darwin" else "cpu"
    others = "" if sys.platform == "darwin" else " (or `pip install 'lmwire[cuda]'` for an NVIDIA GPU)"
    return f"install it with `pip install 'lmwire[{extra}]'`{others}"


@contextlib.contextmanager
def _own_file_limit() -> Iterator[None]:
    """Keeps mlx-lm's import from lowering the process's limit of open files, which only root could raise again."""
    change = resource.setrlimit
    resource.setrlimit = lambda *_: None
    try:
        yield
    finally:
        resource.setrlimit = change
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = OPEN_FILES if hard == resource.RLIM_INFINITY else min(OPEN_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
