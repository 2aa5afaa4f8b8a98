"""Open a speech model."""

from pathlib import Path
from typing import Any, Final

import numpy as np
from mlx.utils import tree_flatten
from mlx_audio.stt.utils import load_model
from mlx_audio.utils import load_weights

from lmwire_protocol import Media, RequestError, Transcribe

from ..engine.interface import ModelInfo, Report
from ..engine.load_context import LoadContext, refuse_settings
from ..media import MediaReader, Sound
from ..models import device_memory
from ..models.weights import quantization, read_weights, store_transposed, summarize_exception, weights_bytes
from ..process.bare_package import install_bare
from .detect import detect_family
from .recording import Recording
from .runner import TranscriptionRunner
from .transcriber import Transcriber

install_bare("mlx_audio.stt.models")  # its own `__init__` imports every family, which takes most of a second

WARM_UP_S: Final = 1
"""Seconds of silence in the warm-up."""
START_TOKEN: Final = "<|startoftranscript|>"
"""A token of every Whisper tokenizer. For a folder without a tokenizer, transformers makes an empty one."""
_WARM_UP_REQUEST: Final = Transcribe(audio=Media(data=""))


def open_speech_model(context: LoadContext) -> TranscriptionRunner:
    """Load a speech model; see `lmwire_worker.engine.interface.ModelLoader.open`.

    Raises:
        RequestError: bad_model, unsupported, out_of_memory.
        LoadCancelled: From `report`.
    """
    request, folder, config, report = context.request, context.folder, context.config, context.report
    refuse_settings(request, "a speech model", "context_len")
    transcriber = _open(folder, config)
    model = _describe(folder, config, transcriber)
    limit = context.memory_limit or device_memory.default_budget()
    if not request.force:
        device_memory.check_fits(model, 0, limit, device_memory.free_bytes())
    context.release_current_model()
    store_transposed(transcriber.module)
    read_weights(transcriber.module, folder, report)
    device_memory.limit_mlx_memory(limit)
    _try(transcriber, folder, report)
    return TranscriptionRunner(transcriber, model, MediaReader(context.media_policy, transcriber.sample_rate))


def _open(folder: Path, config: dict[str, Any]) -> Transcriber:
    """Open a model without reading its weights. Raises RequestError: bad_model."""
    family = detect_family(config)
    try:
        # Without a type, mlx-audio would guess one from the folder's name.
        module: Any = load_model(folder, lazy=True, model_type=family, model_name_parts=[])
        weights = load_weights(folder)
        given = module.sanitize(weights) if hasattr(module, "sanitize") else weights
    except BaseException as error:  # models raise whatever a wrong config leads to
        raise RequestError("bad_model", f"{folder} does not load: {summarize_exception(error)}") from None
    leaves: Any = tree_flatten(module.parameters())
    if missing := sorted({name for name, _ in leaves} - given.keys()):
        raise RequestError("bad_model", f"{folder} lacks {len(missing)} of its weights: {', '.join(missing[:3])}")
    if family == "parakeet":
        from .parakeet import Parakeet

        return Parakeet(module)
    if module._processor is None or START_TOKEN not in module._processor.tokenizer.get_vocab():
        raise RequestError("bad_model", f"{folder} has no processor that loads: Whisper's tokenizer files are needed")
    last = max(module._processor.tokenizer.get_vocab().values())
    rows = module.decoder.token_embedding.weight.shape[0]
    if max(last, module.dims.n_vocab - 1) >= rows:
        raise RequestError("bad_model", f"{folder} has a table of {rows} tokens, and its tokenizer or config has more")
    from .whisper import Whisper

    return Whisper(module)


def _describe(folder: Path, config: dict[str, Any], transcriber: Transcriber) -> ModelInfo:
    dims = getattr(transcriber.module, "dims", None)
    encoder = config.get("encoder") or {}
    return ModelInfo(
        path=str(folder),
        model_type=config.get("model_type") or str(detect_family(config)),
        vocab_size=dims.n_vocab if dims else len(transcriber.module.vocabulary),
        layers=dims.n_audio_layer + dims.n_text_layer if dims else encoder.get("n_layers", 0),
        hidden_size=dims.n_text_state if dims else encoder.get("d_model", 0),
        context_len=dims.n_text_ctx if dims else 0,
        weights_bytes=weights_bytes(transcriber.module),
        capabilities=["transcribe"],
        quantization=quantization(config),
    )


def _try(transcriber: Transcriber, folder: Path, report: Report) -> None:
    """Transcribe silence, which compiles all kernels."""
    silence = Sound(np.zeros(WARM_UP_S * transcriber.sample_rate, np.float32), transcriber.sample_rate, b"")
    report("warm_up", 0, 1, "steps")
    try:
        for _ in transcriber.transcribe(Recording(silence, transcriber.sample_rate), _WARM_UP_REQUEST):
            report("warm_up", 0, 1, "steps")
    except RequestError:
        raise
    except BaseException as error:
        problem = f"{folder} loads, but fails on a first recording: {summarize_exception(error)}"
        raise RequestError("bad_model", problem) from None
    report("warm_up", 1, 1, "steps")
