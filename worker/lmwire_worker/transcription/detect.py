"""Detect speech models. This module imports no model library."""

from typing import Any, Final, Literal

Family = Literal["whisper", "parakeet"]

PARAKEET_TARGETS: Final = (
    "nemo.collections.asr.models.rnnt_bpe_models.EncDecRNNTBPEModel",
    "nemo.collections.asr.models.hybrid_rnnt_ctc_bpe_models.EncDecHybridRNNTCTCBPEModel",
    "nemo.collections.asr.models.ctc_bpe_models.EncDecCTCModelBPE",
)
"""NeMo's names of Parakeet models. Its configurations have no `model_type`."""
ARCHIVE_FIELDS: Final = ("fermion", "artifact", "ternary_modules")
"""Configuration fields of Parakeet models in archives, which mlx-audio would unpack or fetch."""


def detect_family(config: dict[str, Any]) -> Family | None:
    """Return the family of a config.json; None if it is not that of a speech model."""
    if config.get("model_type") == "whisper" or {"n_mels", "n_audio_ctx", "n_text_ctx"} <= config.keys():
        return "whisper"
    return "parakeet" if config.get("target") in PARAKEET_TARGETS and not any(map(config.get, ARCHIVE_FIELDS)) else None


def is_speech_model(config: dict[str, Any]) -> bool:
    """Return whether a config.json is that of a speech model."""
    return detect_family(config) is not None
