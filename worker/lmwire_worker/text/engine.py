"""Opens text lanes. Imports no model library by itself; see `prepare`."""

import contextlib
import importlib.util
import resource
import sys
import weakref
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from lmwire_protocol import FEATURES, Load, RequestError

from ..lane import Lane, LoadCancelled, Report
from .disk_settings import DiskSettings

OPEN_FILES: Final = 2048
"""Large models have many files."""


class TextEngine:
    """See `lmwire_worker.lane.Engine`.

    Args:
        memory_limit: Bytes that a model, its caches and its requests may take together; None for what the device has.
        disk: What is kept on disk of prompts and answers; None for nothing.
    """

    def __init__(self, memory_limit: int | None = None, disk: DiskSettings | None = None) -> None:
        self._memory_limit = memory_limit
        self._disk = disk
        self.names = ["mlx_lm"] if importlib.util.find_spec("mlx_lm") else []
        self.features = [
            name for name in FEATURES if not name.endswith(".format") or importlib.util.find_spec("llguidance")
        ]
        self._missing: str | None = None
        self._base: Callable[[], Any] = lambda: None
        """The `Base` that was read last, or None: it goes with the last lane on it."""
        self._finish: Callable[[], None] = lambda: None
        """Of the last lane's `Disk`."""

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
            return self._open(request, report, replace)
        except (RequestError, LoadCancelled) as error:
            failure = error
        except Exception as error:  # a model's code may fail at anything, and the worker outlives it
            failure = RequestError("engine_error", f"{request.path} does not load: {type(error).__name__}: {error}")
        # The traceback holds half a model through its frames' variables, so it ends here.
        failure.__traceback__ = failure.__context__ = failure.__cause__ = None
        _release()
        raise failure

    def finish(self) -> None:
        self._finish()

    def _open(self, request: Load, report: Report, give_up: Callable[[], None]) -> Lane:
        from . import memory
        from .adapters import attach, find_adapter
        from .admission import Room, check_load
        from .checks import check_folder
        from .draft import open_draft
        from .fingerprint import fingerprint
        from .kv_settings import limit_context, quantize_cache
        from .lane import TextLane
        from .loading import check_architecture, describe, load_tokenizer, open_base, read_weights
        from .prefix_cache import open_disk
        from .resolve import find_folder
        from .warm_up import warm_up

        report("resolve", 0, None, "steps")
        folder = find_folder(request.path, report)
        config = check_folder(folder, trust_remote_code=request.trust_remote_code)
        check_architecture(config)
        adapter = find_adapter(request.adapter_path) if request.adapter_path else None
        tokenizer = load_tokenizer(folder, config, trust_remote_code=request.trust_remote_code)
        draft = open_draft(request, report)
        held = self._held(folder)
        base = held or open_base(folder, trust_remote_code=request.trust_remote_code)
        network = base.network()
        if adapter:
            attach(network, adapter)
        if request.kv_bits:
            quantize_cache(network, request.kv_bits)
        model = limit_context(describe(folder, base.config, network, tokenizer, adapter), request.context_len)
        if draft:
            network = draft.beside(network, tokenizer, model.vocab_size)
            model = replace(model, weights_bytes=model.weights_bytes + draft.model.weights_bytes)
        limit = self._memory_limit or memory.default_budget()
        cost = _row_cost(network, folder)
        if not request.force:
            check_load(model, cost, limit, memory.free_bytes())
        give_up()
        read_weights(network, folder, report, held.modules() if held else None)
        self._base = weakref.ref(base)
        folders = [path for path in (folder, adapter, draft and Path(draft.model.path)) if path]
        disk = open_disk(self._disk, fingerprint(network, request, folders)) if self._disk else None
        if disk:
            self._finish = disk.finish
        room = Room.beside(model, cost, limit)
        memory.tell_mlx(room.budget)
        lane = TextLane(network, tokenizer, model, room, disk)
        warm_up(lane, report)
        return lane

    def _held(self, folder: Path) -> Any:
        """The folder's `Base` if it is in memory."""
        base = self._base()
        return base if base and base.is_of(folder) else None


def _row_cost(network: Any, folder: Path) -> Any:
    from .admission import RowCost
    from .loading import sentence

    try:
        return RowCost.of(network)
    except Exception as error:  # the architecture's own code runs here for the first time
        raise RequestError("bad_model", f"{folder} loads, but fails on a first prompt: {sentence(error)}") from None


def _release() -> None:
    if "mlx.core" in sys.modules:
        from .memory import give_back

        give_back()


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
