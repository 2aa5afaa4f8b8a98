"""Tiny speech-to-text models with random weights, and recordings for them."""

import io
import itertools
import json
import wave
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
from mlx.utils import tree_flatten
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

import random_model

LANGUAGES = 99
TEXT_TOKENS = 50257
"""Text tokens of multilingual Whisper models, which mlx-audio recognizes by the size of their vocabulary."""
SHAPE = {
    "n_mels": 80,
    "n_audio_ctx": 1500,
    "n_audio_state": 32,
    "n_audio_head": 2,
    "n_audio_layer": 1,
    "n_text_ctx": 48,
    "n_text_state": 32,
    "n_text_head": 2,
    "n_text_layer": 2,
}
SPOKEN = 2.0
TIMES = 0.5
"""Scales of the embeddings of words after a space, and of timestamps: large enough for windows with segments."""
SURE = 3.0
"""Factor of the logits. It makes the likeliest token clearly the likeliest, so that a window needs one attempt."""


def write_whisper(folder: Path, *, multilingual: bool = False, seed: int = 0) -> Path:
    """Write a Whisper model whose windows have a few segments each, and return the folder."""
    from mlx_audio.stt.models.whisper import Model, ModelConfig

    folder.mkdir(parents=True)
    size = _write_tokenizer(folder, TEXT_TOKENS if multilingual else 512, multilingual=multilingual)
    config = {"model_type": "whisper", **SHAPE, "n_vocab": size}
    (folder / "config.json").write_text(json.dumps(config))
    features = {"feature_extractor_type": "WhisperFeatureExtractor", "feature_size": 80}
    (folder / "preprocessor_config.json").write_text(json.dumps(features))
    mx.random.seed(seed)
    parameters: Any = tree_flatten(Model(ModelConfig.from_dict(config)).parameters())
    weights = {name: value for name, value in parameters if value.ndim == 1}
    for name, value in parameters:
        if value.ndim > 1:
            weights[name] = mx.random.normal(value.shape) * (2 / value.shape[-1] ** 0.5)
    said = weights["decoder.token_embedding.weight"]
    vocabulary = json.loads((folder / "vocab.json").read_text())
    spoken = [token for text, token in vocabulary.items() if text.startswith("Ġ") and text[1:]]
    scale = mx.full((size, 1), 0.1)
    scale[mx.array(spoken)] = SPOKEN
    scale[len(vocabulary) :] = TIMES
    weights["decoder.token_embedding.weight"] = said * scale
    weights["decoder.ln.weight"] *= SURE
    weights = {name: value.astype(mx.float16) for name, value in weights.items()}
    mx.save_safetensors(str(folder / "model.safetensors"), weights, metadata={"format": "mlx"})
    return folder


def write_parakeet(folder: Path, *, expansion: int = 2) -> Path:
    """Write a Parakeet model that finds words in most windows, and return the folder.

    Args:
        folder: Where to write.
        expansion: Width of the encoder's inner layers as a multiple of its own. A large one makes a large model.
    """
    from mlx_audio.stt.models.parakeet import Model

    folder.mkdir(parents=True)
    vocabulary = [f"▁{syllable}" for syllable in ("ka", "lo", "mi", "nu", "se", "ta")] + ["ri", "."]
    config = {
        "target": "nemo.collections.asr.models.rnnt_bpe_models.EncDecRNNTBPEModel",
        "model_defaults": {"tdt_durations": [0, 1, 2, 3, 4]},
        "preprocessor": {
            "sample_rate": 16_000,
            "normalize": "per_feature",
            "window_size": 0.025,
            "window_stride": 0.01,
            "window": "hann",
            "features": 80,
            "n_fft": 512,
            "dither": 0.0,
        },
        "encoder": {
            "feat_in": 80,
            "n_layers": 1,
            "d_model": 32,
            "n_heads": 2,
            "ff_expansion_factor": expansion,
            "subsampling_factor": 8,
            "self_attention_model": "rel_pos",
            "subsampling": "dw_striding",
            "conv_kernel_size": 9,
            "subsampling_conv_channels": 16,
            "pos_emb_max_len": 5000,
        },
        "decoder": {
            "blank_as_pad": True,
            "vocab_size": len(vocabulary),
            "prednet": {"pred_hidden": 32, "pred_rnn_layers": 1},
        },
        "joint": {
            "num_classes": len(vocabulary),
            "vocabulary": vocabulary,
            "jointnet": {"joint_hidden": 32, "activation": "relu", "encoder_hidden": 32, "pred_hidden": 32},
            "num_extra_outputs": 5,
        },
        "decoding": {"model_type": "tdt", "durations": [0, 1, 2, 3, 4], "greedy": {"max_symbols": 10}},
    }
    (folder / "config.json").write_text(json.dumps(config))
    mx.random.seed(0)
    parameters: Any = tree_flatten(Model.from_config(config).parameters())
    weights = {
        name: mx.random.normal(value.shape) * (2 / value.shape[-1] ** 0.5) if value.ndim > 1 else value
        for name, value in parameters
    }
    mx.save_safetensors(str(folder / "model.safetensors"), weights, metadata={"format": "mlx"})
    return folder


def recording(seconds: float, *, rate: int = 16_000, pitch: float = 440.0) -> bytes:
    """Return a WAV file of a tone whose pitch changes all the time."""
    times = np.arange(int(seconds * rate)) / rate
    tone = 0.4 * np.sin(2 * np.pi * pitch * times * (1 + 0.2 * np.sin(times)))
    out = io.BytesIO()
    with wave.open(out, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes((tone * 32767).astype("<i2").tobytes())
    return out.getvalue()


def _write_tokenizer(folder: Path, text_tokens: int, *, multilingual: bool) -> int:
    """Write Whisper's tokenizer, and return its number of tokens."""
    from mlx_audio.stt.models.whisper.tokenizer import LANGUAGES as CODES

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    merges = list(itertools.islice(random_model.syllables(), text_tokens - len(letters)))
    vocabulary = {text: at for at, text in enumerate(letters + ["".join(merge) for merge in merges])}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    codes = list(CODES)[:LANGUAGES] if multilingual else []
    names = ["endoftext", "startoftranscript", *codes, "translate", "transcribe", "startoflm", "startofprev"]
    names += ["nospeech", "notimestamps", *(f"{at * 0.02:.2f}" for at in range(1501))]
    tokenizer.add_special_tokens([AddedToken(f"<|{name}|>", special=True) for name in names])
    tokenizer.save(str(folder / "tokenizer.json"))
    end = "<|endoftext|>"
    config = {
        "tokenizer_class": "WhisperTokenizer",
        "eos_token": end,
        "bos_token": end,
        "unk_token": end,
        "pad_token": end,
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    (folder / "vocab.json").write_text(json.dumps(vocabulary))
    (folder / "merges.txt").write_text("\n".join(" ".join(merge) for merge in merges))
    return tokenizer.get_vocab_size()
