"""Load models of every kind. The module itself imports no model library; `MlxModelLoader.prepare` does."""

import contextlib
import importlib.util
import os
import resource
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from lmwire_protocol import DEFAULT_MODEL, FEATURES, Load, RequestError
from lmwire_protocol.extras import not_installed, worker_install_hint, worker_not_installed

from ..engine.interface import LoadCancelled, ModelRunner, Report
from ..engine.load_context import DiskCacheOptions, LoadContext
from ..media import MediaPolicy
from ..process.exits import on_exit
from ..process.memory_pressure import MemoryPressure
from ..process.run_files import RunFile

if TYPE_CHECKING:
    from ..generation.loader import TextModelLoader
    from ..multimodal.loader import MultimodalLoader
    from ..ranks import Ranks

OPEN_FILES: Final = 2048
"""Large models have many files."""
GRAPH_OPERATIONS: Final = "MLX_MAX_OPS_PER_BUFFER"
"""The variable that limits the operations of a CUDA graph. MLX allows 20 on most devices, and 100 on an H100."""
LIBRARIES: Final = ("mlx_lm", "mlx_vlm", "mlx_audio")


class MlxModelLoader:
    """See `lmwire_worker.engine.interface.ModelLoader`.

    Args:
        memory_limit: Memory budget of a model, its caches and its requests, in bytes; None for the device's memory.
        disk: The prefix cache on disk; None without one.
        media: The media that requests may name; None for media inside requests alone.
        template_dir: A folder of chat templates that loads may name; None for the model's own alone.
        owns_process: The process serves nothing else, so a model's code stays refused after a load as well.
        ranks: The processes that hold each model together; None if this one does.
    """

    def __init__(
        self,
        memory_limit: int | None = None,
        disk: DiskCacheOptions | None = None,
        media: MediaPolicy | None = None,
        template_dir: Path | None = None,
        *,
        owns_process: bool = False,
        ranks: "Ranks | None" = None,
    ) -> None:
        self._owns_process = owns_process
        self._ranks = ranks
        self._run_file = RunFile()
        on_exit(self._run_file.remove)
        self._memory_limit = memory_limit
        self._media = media or MediaPolicy()
        self._disk = disk
        self._template_dir = template_dir
        self._text: TextModelLoader | None = None
        """Made by the first load of a model that generates text."""
        self.names = [name for name in LIBRARIES if importlib.util.find_spec(name)]
        self.features = [
            name
            for name in FEATURES
            if name != DEFAULT_MODEL
            and ((needed := _required_library(name)) is None or importlib.util.find_spec(needed))
        ]
        self._missing: str | None = None

    def prepare(self) -> None:
        """Import MLX and the models of mlx-lm, after the first reply. A failure is reported by the next load."""
        if "mlx_lm" not in self.names:
            self._missing = worker_not_installed()
            return
        _start_sandbox()
        from ..models import mlx_lm_package  # after the first reply
        from ..process.private_directory import use_private_directory

        try:
            use_private_directory(on_exit)
        except OSError as error:
            self._missing = f"MLX has no safe place for compiled code: {error}"
            return
        try:
            _raise_file_limit()
            _shorten_cuda_graphs()
            mlx_lm_package.install()
            from ..generation import loader  # noqa: F401 (what most loads need)
        except (ImportError, OSError) as error:  # mlx is installed without its Linux backend
            self._missing = f"mlx-lm cannot be imported ({error}); {worker_install_hint()}"

    def read_pressure(self) -> MemoryPressure:
        """Return the pressure on the system's memory; NORMAL on a device with memory of its own."""
        from ..models.device_memory import read_pressure

        return read_pressure()

    def open(self, request: Load, report: Report, release_current_model: Callable[[], None]) -> ModelRunner:
        """Load a model, and translate every failure into an error of the load."""
        if self._missing is not None:
            raise RequestError("unsupported", self._missing)
        try:
            runner = self._open(request, report, release_current_model)
            _release_unused_memory()  # of files that were read, and of the trial
            if self._owns_process:
                self._run_file.record(str(request.path), runner.model.path)
            return runner
        except (RequestError, LoadCancelled) as error:
            failure = error
        except BaseException as error:  # a model's code may raise anything, and the worker goes on
            failure = RequestError("engine_error", f"{request.path} does not load: {type(error).__name__}: {error}")
        # The traceback's frames refer to the weights, so drop it.
        failure.__traceback__ = failure.__context__ = failure.__cause__ = None
        _release_memory()
        raise failure

    def model_closed(self) -> None:
        """Remove the run file: this process has no model."""
        self._run_file.remove()

    def flush(self) -> None:
        """Wait until the caches on disk are written; see `ModelLoader.flush`."""
        if self._text is not None:
            self._text.flush()

    def _open(self, request: Load, report: Report, release_current_model: Callable[[], None]) -> ModelRunner:
        """Find out the kind of the model, and open it as that."""
        from ..models.attention import replace_attention
        from ..models.remote_code import guard_remote_code
        from ..models.resolve import find_folder
        from ..models.skinny_product import replace_layers
        from ..models.tokenizer_check import check_tokenizer
        from ..models.weights import checked_quantization
        from .model_kind import detect_kind

        replace_attention()  # before the model's code is imported, which may keep MLX's function
        replace_layers()
        report("resolve", 0, None, "steps")
        folder = find_folder(request.path, report, _config_of, trust_remote_code=request.trust_remote_code)
        kind, config = detect_kind(folder, trust_remote_code=request.trust_remote_code)
        context = LoadContext(
            *(request, folder, config, report, release_current_model),
            *(self._memory_limit, self._media, self._template_dir),
        )
        trusted = request.trust_remote_code
        if kind in ("speech", "synthesis"):  # their libraries load the tokenizer, and use it in the engine's thread
            _end_sandbox()
            check_tokenizer(folder, trust_remote_code=trusted, must_be_linear=True)
        with guard_remote_code(folder, trusted=trusted, lasting=self._owns_process), checked_quantization():
            return self._open_kind(kind, context)

    def _open_kind(self, kind: str, context: LoadContext) -> ModelRunner:
        if self._ranks is not None and kind != "text":
            problem = f"{context.folder} is not a model of text alone, and only those are split over ranks"
            raise RequestError("unsupported", f"{problem}; load it without --ranks", field="path")
        if kind == "speech":
            self._require("mlx_audio", f"{context.folder} is a model that writes down speech")
            from ..transcription.loader import open_speech_model

            return open_speech_model(context)
        if kind == "synthesis":
            self._require("mlx_audio", f"{context.folder} is a model that speaks")
            from ..synthesis.loader import open_synthesis_model

            return open_synthesis_model(context)
        if kind == "embeddings":
            self._require("mlx_vlm", f"{context.folder} is a model that makes vectors")
            from ..embeddings.loader import open_embedding_model

            return open_embedding_model(context)
        media_loader = self._media_loader(context) if kind == "vision" else None
        if self._text is None:
            from ..generation.loader import TextModelLoader

            self._text = TextModelLoader(self._disk, self._ranks)
        return self._text.open(context, media_loader)

    def _media_loader(self, context: LoadContext) -> "MultimodalLoader | None":
        """Return the loader of a model's media part; None if the model can only be loaded without it.

        Raises:
            RequestError: unsupported.
        """
        from ..generation.language_model import check_architecture
        from ..multimodal.detect import is_supported, unsupported_error

        folder, config = context.folder, context.config
        if "mlx_vlm" in self.names and is_supported(config):
            from ..multimodal.loader import MultimodalLoader, has_architecture

            return MultimodalLoader(context.request, folder) if has_architecture(config) else None
        try:
            check_architecture(config)
        except RequestError:
            if not is_supported(config):
                raise unsupported_error(folder, config) from None
            self._require("mlx_vlm", f"{folder} is a model that sees")
        return None

    def _require(self, library: str, why: str) -> None:
        if library not in self.names:
            problem = not_installed(library.replace("_", "-"), "vision")
            raise RequestError("unsupported", f"{why}, and {problem}")


def _config_of(folder: Path) -> dict[str, Any]:
    from .model_kind import detect_kind

    return detect_kind(folder, trust_remote_code=True)[1]


def _required_library(feature: str) -> str | None:
    """Return the library that a feature needs besides mlx-lm; None if it needs none."""
    if feature.endswith(".format"):
        return "llguidance"
    return {"embed": "mlx_vlm", "transcribe": "mlx_audio", "speak": "mlx_audio"}.get(feature)


def _start_sandbox() -> None:
    """Start the process that renders chat templates beside the imports: its first answer takes as long as they do."""
    from ..prompts.chat_template import SANDBOXES  # not in the thread, where it could meet the same imports
    from ..sandbox import LimitExceeded

    def start() -> None:
        with contextlib.suppress(LimitExceeded, OSError):  # the first chat reports it
            SANDBOXES[False].ask({"subject": "template", "source": ""})

    threading.Thread(target=start, name="sandbox", daemon=True).start()


def _end_sandbox() -> None:
    """End that process, which the model does not need. It would start again."""
    from ..prompts.chat_template import SANDBOXES

    SANDBOXES[False].close()


def _release_unused_memory() -> None:
    from ..models.device_memory import release_unused_memory

    release_unused_memory()


def _release_memory() -> None:
    if "mlx.core" in sys.modules:
        from ..models.device_memory import release_cached_memory

        release_cached_memory()


def _shorten_cuda_graphs() -> None:
    """Let MLX start few operations at a time on CUDA, unless the environment asks for another number.

    MLX starts a sequence of operations as a graph, and builds one anew for each sequence that it has not seen. While
    requests come and go, hardly two steps are the same. Short sequences come again, and are quickly built.
    """
    if sys.platform == "linux":  # the variable has another meaning on Metal
        os.environ.setdefault(GRAPH_OPERATIONS, "20")


def _raise_file_limit() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = OPEN_FILES if hard == resource.RLIM_INFINITY else min(OPEN_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
