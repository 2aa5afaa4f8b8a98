"""Which models write down speech. Imports no model library."""

from pathlib import Path
from typing import Any, Final, Literal

from lmwire_protocol import RequestError

from ..checks import check_safetensors

Family = Literal["whisper", "parakeet"]

PARAKEET: Final = (
    "nemo.collections.asr.models.rnnt_bpe_models.EncDecRNNTBPEModel",
    "nemo.collections.asr.models.hybrid_rnnt_ctc_bpe_models.EncDecHybridRNNTCTCBPEModel",
    "nemo.collections.asr.models.ctc_bpe_models.EncDecCTCModelBPE",
)
"""What NeMo calls them, whose configurations name no model_type."""


def family_of(config: dict[str, Any]) -> Family | None:
    """Which family a config.json belongs to; None for one that does not write down speech."""
    if config.get("model_type") == "whisper" or {"n_mels", "n_audio_ctx", "n_text_ctx"} <= config.keys():
        return "whisper"
    return "parakeet" if config.get("target") in PARAKEET else None


def check_weights(folder: Path) -> None:
    """Raises bad_model when a speech model's weights are not there, or not whole."""
    weights = sorted(folder.glob("*.safetensors"))
    if not weights:
        raise RequestError("bad_model", f"{folder} has no weights: no file *.safetensors")
    for path in weights:
        check_safetensors(path)


def is_speech_model(config: dict[str, Any]) -> bool:
    """Whether a config.json is that of a model that writes down speech."""
    return family_of(config) is not None
