"""Open a model that speaks."""

from contextlib import closing
from pathlib import Path
from typing import Any, Final, cast

from mlx_audio.tts.utils import load_model

from lmwire_protocol import RequestError, Speak

from ..engine.interface import ModelInfo, Report
from ..engine.load_context import LoadContext, refuse_settings
from ..models import device_memory
from ..models.weights import quantization, read_weights, summarize_exception
from .detect import check_examined
from .qwen3_tts import MAX_POSITIONS, Qwen3TTS, check_qwen3_tts
from .runner import SynthesisRunner
from .synthesizer import Synthesizer

_WARM_UP: Final = Speak(text="Hello.", instructions="A calm voice.")
"""The instructions are for models that make a voice of them; others ignore them here."""


def open_synthesis_model(context: LoadContext) -> SynthesisRunner:
    """Load a model that speaks; see `lmwire_worker.engine.interface.ModelLoader.open`.

    Raises:
        RequestError: bad_model, unsupported, out_of_memory.
        LoadCancelled: From `report`.
    """
    request, folder, config, report = context.request, context.folder, context.config, context.report
    refuse_settings(request, "a model that speaks", "context_len")
    check_examined(folder, config)
    model = _describe(folder, config)
    limit = context.memory_limit or device_memory.default_budget()
    if not request.force:  # before the model is opened, since that reads some of its weights
        device_memory.check_fits(model, 0, limit, device_memory.free_bytes())
    synthesizer = _open(folder, config)
    context.release_current_model()
    read_weights(synthesizer.module, folder, report)
    device_memory.limit_mlx_memory(limit)
    _try(synthesizer, folder, report)
    return SynthesisRunner(synthesizer, model)


def _open(folder: Path, config: dict[str, Any]) -> Synthesizer:
    """Open a model. Raises RequestError: bad_model, unsupported."""
    check_qwen3_tts(folder, config)
    try:
        # Without a type, mlx-audio would guess one from the folder's name.
        module: Any = load_model(folder, lazy=True, model_type=config["model_type"], model_name_parts=[])
    except BaseException as error:  # models raise whatever a wrong config leads to
        raise RequestError("bad_model", f"{folder} does not load: {summarize_exception(error)}") from None
    return Qwen3TTS(module, folder)


def _describe(folder: Path, config: dict[str, Any]) -> ModelInfo:
    talker: dict[str, Any] = config.get("talker_config") or {}
    sizes = [path.stat().st_size for pattern in ("*.safetensors", "*/*.safetensors") for path in folder.glob(pattern)]
    return ModelInfo(
        path=str(folder),
        model_type=config["model_type"],
        vocab_size=talker.get("text_vocab_size", 0),
        layers=talker.get("num_hidden_layers", 0),
        hidden_size=talker.get("hidden_size", 0),
        context_len=talker.get("max_position_embeddings", MAX_POSITIONS),
        weights_bytes=sum(sizes),
        capabilities=["speak"],
        quantization=quantization(config),
    )


def _try(synthesizer: Synthesizer, folder: Path, report: Report) -> None:
    """Compute the first part of a speech, which compiles all kernels."""
    report("warm_up", 0, 1, "steps")
    try:
        with closing(cast(Any, synthesizer.speak(_WARM_UP))) as parts:
            next(parts, None)
    except RequestError:
        raise
    except BaseException as error:
        problem = f"{folder} loads, but fails on a first text: {summarize_exception(error)}"
        raise RequestError("bad_model", problem) from None
    report("warm_up", 1, 1, "steps")
