"""Tiny models that speak, with random weights."""

import json
from pathlib import Path
from typing import Any

import mlx.core as mx
from mlx.utils import tree_flatten

import random_model

TEXT_TOKENS = 512
CODES = 64
END = 64
"""The code that ends a speech. The codes after it are those of the prompt."""
_CODEC = {
    name: END + place
    for place, name in enumerate(
        f"codec_{name}_id" for name in ("eos_token", "think", "nothink", "think_bos", "think_eos", "pad", "bos")
    )
}
VOICES = ("ada", "grace")
LANGUAGES = ("english", "german")
_BLOCK = {
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "num_code_groups": 4,
}
TALKER: dict[str, Any] = {
    **_BLOCK,
    **_CODEC,
    "vocab_size": CODES + 1024,
    "text_hidden_size": 32,
    "text_vocab_size": TEXT_TOKENS,
    "rope_scaling": {"interleaved": True, "mrope_section": [4, 2, 2], "rope_type": "default"},
    "codec_language_id": {name: 80 + place for place, name in enumerate(LANGUAGES)},
    "spk_id": {name: 90 + place for place, name in enumerate(VOICES)},
    "code_predictor_config": {**_BLOCK, "vocab_size": CODES},
}
DECODER: dict[str, Any] = {
    "latent_dim": 96,
    "codebook_dim": 144,
    "codebook_size": CODES,
    "decoder_dim": 160,
    "hidden_size": 32,
    "intermediate_size": 64,
    "head_dim": 16,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "num_hidden_layers": 1,
    "num_quantizers": 4,
    "upsample_rates": [8],
    "upsampling_ratios": [2, 2],
}
"""mlx-audio tells the layouts of convolutions apart by their sizes, so channels are more than 64."""
FRAME_SAMPLES = 32
"""Samples of a frame: the product of the rates. A real model has 1920, for the same sample rate."""


QUIET = 0.002
"""Factor of the last layer, so that samples stay within full scale."""
SURE = 8.0
"""Factor of the logits that makes a code with the logit 0 improbable."""


def write_qwen3_tts(
    folder: Path, kind: str = "custom_voice", *, ends: bool = True, talker: dict[str, Any] | None = None, **fields: Any
) -> Path:
    """Write a Qwen3-TTS model, and return its folder.

    Args:
        folder: Where to write.
        kind: `custom_voice`, `voice_design` or `base`.
        ends: False for a model that hardly ever ends its speech by itself.
        talker: Further fields of its `talker_config`.
        **fields: Further fields of config.json.
    """
    from mlx_audio.tts.models.qwen3_tts import Model, ModelConfig

    folder.mkdir(parents=True)
    random_model.write_tokenizer(folder, TEXT_TOKENS)
    ids = {"tts_pad_token_id": 1, "tts_bos_token_id": 2, "tts_eos_token_id": 3}
    config = {"model_type": "qwen3_tts", "tts_model_type": kind, "tts_model_size": "1b7", **ids, **fields}
    config["talker_config"] = TALKER | (talker or {})
    if kind == "base":
        config["speaker_encoder_config"] = {
            "enc_channels": [96, 96, 96, 96, 288],
            "enc_dim": 32,
            "enc_res2net_scale": 1,
        }
    (folder / "config.json").write_text(json.dumps(config))
    mx.random.seed(0)
    weights = _random(Model(ModelConfig.from_dict(config)))
    if not ends:
        weights["talker.codec_head.weight"] *= SURE
        weights["talker.codec_head.weight"][END] = 0
    mx.save_safetensors(str(folder / "model.safetensors"), weights, metadata={"format": "mlx"})
    _write_speech_tokenizer(folder / "speech_tokenizer")
    return folder


def _write_speech_tokenizer(folder: Path) -> None:
    from mlx_audio.tts.models.qwen3_tts.config import Qwen3TTSTokenizerConfig
    from mlx_audio.tts.models.qwen3_tts.speech_tokenizer import Qwen3TTSSpeechTokenizer

    folder.mkdir()
    config: dict[str, Any] = {"decoder_config": DECODER, "decode_upsample_rate": FRAME_SAMPLES}
    (folder / "config.json").write_text(json.dumps(config))
    weights = _random(Qwen3TTSSpeechTokenizer(Qwen3TTSTokenizerConfig(**config)))
    weights[f"decoder.decoder.{len(DECODER['upsample_rates']) + 2}.conv.weight"] *= QUIET
    mx.save_safetensors(str(folder / "model.safetensors"), weights, metadata={"format": "mlx"})


def _random(network: Any) -> dict[str, mx.array]:
    leaves: Any = tree_flatten(network.parameters())
    return {
        name: mx.random.normal(value.shape) * value.shape[-1] ** -0.5 if value.ndim > 1 else value
        for name, value in leaves
    }
