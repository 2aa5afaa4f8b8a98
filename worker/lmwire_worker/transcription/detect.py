"""Which models write down speech. Imports no model library."""

from typing import Any, Final, Literal

Family = Literal["whisper", "parakeet"]

PARAKEET: Final = (
    "nemo.collections.asr.models.rnnt_bpe_models.EncDecRNNTBPEModel",
    "nemo.collections.asr.models.hybrid_rnnt_ctc_bpe_models.EncDecHybridRNNTCTCBPEModel",
    "nemo.collections.asr.models.ctc_bpe_models.EncDecCTCModelBPE",
)
"""What NeMo calls them, whose configurations name no model_type."""
ARCHIVES: Final = ("fermion", "artifact", "ternary_modules")
"""Fields of Parakeet models in archives, which mlx-audio would unpack or fetch."""


def family_of(config: dict[str, Any]) -> Family | None:
    """Which family a config.json belongs to; None for one that does not write down speech."""
    if config.get("model_type") == "whisper" or {"n_mels", "n_audio_ctx", "n_text_ctx"} <= config.keys():
        return "whisper"
    return "parakeet" if config.get("target") in PARAKEET and not any(map(config.get, ARCHIVES)) else None


def is_speech_model(config: dict[str, Any]) -> bool:
    """Whether a config.json is that of a model that writes down speech."""
    return family_of(config) is not None
