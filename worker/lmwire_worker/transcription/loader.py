"""A speech model's folder into a lane."""

from pathlib import Path
from typing import Any, Final

import numpy as np
from mlx.utils import tree_flatten
from mlx_audio.stt.utils import load_model
from mlx_audio.utils import load_weights

from lmwire_protocol import Load, Media, RequestError, Transcribe

from ..engine.interface import ModelInfo, Report
from ..engine.load_context import LoadContext
from ..media import Reader, Sound
from ..models import memory_budget
from ..models.weights import quantization, read_weights, summarize_exception, weights_bytes
from .detect import family_of
from .recording import Recording
from .runner import TranscriptionRunner
from .transcriber import Listener

TRIAL_S: Final = 1
START: Final = "<|startoftranscript|>"
"""Where a folder has no tokenizer, transformers makes up one that has nothing."""
_TRIAL: Final = Transcribe(audio=Media(data=""))


def open_speech(context: LoadContext) -> TranscriptionRunner:
    """Load a model for which `is_speech_model` is true; see `lmwire_worker.engine.interface.ModelLoader.open`."""
    request, folder, config, report = context.request, context.folder, context.config, context.report
    _check(request)
    listener = _open(folder, config)
    model = _describe(folder, config, listener)
    limit = context.memory_limit or memory_budget.default_budget()
    if not request.force:
        memory_budget.check_fits(model, 0, limit, memory_budget.free_bytes())
    context.release_current_model()
    read_weights(listener.module, folder, report)
    memory_budget.limit_mlx_memory(limit)
    _try(listener, folder, report)
    return TranscriptionRunner(listener, model, Reader(context.media_policy))


def _check(request: Load) -> None:
    for field in ("adapter_path", "draft_path", "context_len", "kv_bits"):
        if getattr(request, field) is not None:
            raise RequestError(
                "unsupported", f"{field}: a model that writes down speech has no use for it", field=field
            )


def _open(folder: Path, config: dict[str, Any]) -> Listener:
    """Reads no weights. Raises RequestError: bad_model."""
    family = family_of(config)
    try:
        # Without a type mlx-audio would go by words in the folder's name.
        module: Any = load_model(folder, lazy=True, model_type=family, model_name_parts=[])
        weights = load_weights(folder)
        given = module.sanitize(weights) if hasattr(module, "sanitize") else weights
    except Exception as error:  # models raise whatever a wrong config leads to
        raise RequestError("bad_model", f"{folder} does not load: {summarize_exception(error)}") from None
    leaves: Any = tree_flatten(module.parameters())
    if missing := sorted({name for name, _ in leaves} - given.keys()):
        raise RequestError("bad_model", f"{folder} lacks {len(missing)} of its weights: {', '.join(missing[:3])}")
    if family == "parakeet":
        from .parakeet import Parakeet

        return Parakeet(module)
    if module._processor is None or START not in module._processor.tokenizer.get_vocab():
        raise RequestError("bad_model", f"{folder} has no processor that loads: Whisper's tokenizer files are needed")
    last = max(module._processor.tokenizer.get_vocab().values())
    rows = module.decoder.token_embedding.weight.shape[0]
    if max(last, module.dims.n_vocab - 1) >= rows:
        raise RequestError("bad_model", f"{folder} has a table of {rows} tokens, and its tokenizer or config has more")
    from .whisper import Whisper

    return Whisper(module)


def _describe(folder: Path, config: dict[str, Any], listener: Listener) -> ModelInfo:
    dims = getattr(listener.module, "dims", None)
    encoder = config.get("encoder") or {}
    return ModelInfo(
        path=str(folder),
        model_type=config.get("model_type") or str(family_of(config)),
        vocab_size=dims.n_vocab if dims else len(listener.module.vocabulary),
        layers=dims.n_audio_layer + dims.n_text_layer if dims else encoder.get("n_layers", 0),
        hidden_size=dims.n_text_state if dims else encoder.get("d_model", 0),
        context_len=dims.n_text_ctx if dims else 0,
        weights_bytes=weights_bytes(listener.module),
        capabilities=["transcribe"],
        quantization=quantization(config),
    )


def _try(listener: Listener, folder: Path, report: Report) -> None:
    """Listens to a moment of silence, so that everything is compiled."""
    silence = Sound(np.zeros(TRIAL_S * listener.rate, np.float32), listener.rate, b"")
    report("warm_up", 0, 1, "steps")
    try:
        for _ in listener.listen(Recording(silence, listener.rate), _TRIAL):
            report("warm_up", 0, 1, "steps")
    except RequestError:
        raise
    except Exception as error:
        problem = f"{folder} loads, but fails on a first recording: {summarize_exception(error)}"
        raise RequestError("bad_model", problem) from None
    report("warm_up", 1, 1, "steps")
