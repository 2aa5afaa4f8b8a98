"""Qwen3-TTS: voices of its own, or a voice that instructions describe. It streams while it speaks."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import mlx.core as mx
import numpy as np
from mlx.utils import tree_flatten

from lmwire_protocol import RequestError, Speak

from ..models.config_check import check_config
from ..models.folder_check import check_weights
from ..models.model_files import CONFIG, bad_model, read_json
from .sentences import split_text
from .synthesizer import SpeechPart, check_name, refuse_fields

SPEECH_TOKENIZER: Final = "speech_tokenizer"
"""The folder of the part that turns codes into sound."""
MAX_POSITIONS: Final = 32_768
"""Positions of the talker, if its config does not say: mlx-audio's default."""
MAX_FRAMES: Final = 2048
"""Frames of sound for one part of the text, at 12.5 a second: mlx-audio's default."""
MAX_CHARACTERS: Final = 400
"""Characters of one part of the text. Slow speech of this length has about half of the frames."""
STEP_S: Final = 0.8
"""Seconds of sound in one step."""
_SUPPRESSED_CODES: Final = 1024
"""Codes at the end of the talker's vocabulary that mlx-audio never samples."""
_SMALL: Final = "0b6"
"""The size of the models that take no instructions with a voice."""


def check_qwen3_tts(folder: Path, config: dict[str, Any]) -> None:
    """Check the files of a Qwen3-TTS model that no other kind of model has.

    Args:
        folder: The model's folder.
        config: Its config.json.

    Raises:
        RequestError: bad_model.
    """
    part = folder / SPEECH_TOKENIZER
    if not part.is_dir() or not any(part.glob("*.safetensors")):
        raise bad_model(folder, f"lacks the folder {SPEECH_TOKENIZER} with its weights")
    check_config(part / CONFIG, read_json(part / CONFIG), check_weights(part))
    talker = config.get("talker_config")
    if not isinstance(talker, dict):
        raise bad_model(folder / CONFIG, "has no talker_config")
    if talker.get("vocab_size", 3072) <= _SUPPRESSED_CODES:
        raise bad_model(folder / CONFIG, f"has a talker with {_SUPPRESSED_CODES} codes or less, which are all unused")
    _check_ids(folder / CONFIG, talker, "codec_", talker.get("vocab_size", 3072))
    _check_ids(folder / CONFIG, {"spk_id": talker.get("spk_id")}, "spk_id", talker.get("vocab_size", 3072))
    _check_ids(folder / CONFIG, config, "tts_", talker.get("text_vocab_size", 151936))


def _check_ids(path: Path, config: dict[str, Any], prefix: str, size: int) -> None:
    """Refuse ids of tokens that a table does not have: MLX would read beyond its memory."""
    for name, value in config.items():
        if not name.startswith(prefix) or "_id" not in name or value is None:
            continue
        ids = list(value.values()) if isinstance(value, dict) else [value]
        if any(type(each) is not int or not 0 <= each < size for each in ids):
            raise bad_model(path, f"has a {name} that is not below {size}")


class Qwen3TTS:
    """A Qwen3-TTS model; see `Synthesizer`.

    Args:
        module: mlx-audio's model.
        folder: Its folder, for errors.

    Raises:
        RequestError: bad_model.
    """

    def __init__(self, module: Any, folder: Path) -> None:
        _check_parts(module, folder)
        self.module = module
        self.sample_rate: int = module.sample_rate
        self._kind: str = module.config.tts_model_type
        self._voices = [str(name).lower() for name in module.supported_speakers]
        self._languages = [str(name).lower() for name in module.supported_languages]

    def check(self, request: Speak) -> None:
        """Check voice, language and instructions. Raises RequestError."""
        unused = {"speed"}
        if not self._voices or self._kind == "voice_design":
            unused.add("voice")
        if self._kind == "base" or (self._kind == "custom_voice" and self.module.config.tts_model_size == _SMALL):
            unused.add("instructions")
        refuse_fields(request, unused)
        check_name("voice", request.voice, self._voices)
        check_name("language", request.language, self._languages)
        if self._kind == "voice_design" and not request.instructions:
            problem = "instructions: this model makes a voice of a description; describe one"
            raise RequestError("invalid_request", problem, field="instructions")

    def speak(self, request: Speak) -> Iterator[SpeechPart]:
        """Speak a text; see `Synthesizer.speak`."""
        default_voice = self._voices[0] if self._kind == "custom_voice" else None
        for text in split_text(request.text, MAX_CHARACTERS):
            frames = 0
            for result in self.module.generate(
                text,
                voice=request.voice or default_voice,
                instruct=request.instructions or None,
                lang_code=request.language or "auto",
                split_pattern=None,
                max_tokens=MAX_FRAMES,
                stream=True,
                streaming_interval=STEP_S,
            ):
                frames += result.token_count
                yield SpeechPart(np.array(result.audio.astype(mx.float32)), is_cut=frames >= MAX_FRAMES)


def _check_parts(module: Any, folder: Path) -> None:
    """Check what mlx-audio only warns of: a tokenizer or a speech tokenizer that it could not load."""
    if module.tokenizer is None:
        raise bad_model(folder, "has no tokenizer that loads")
    if module.speech_tokenizer is None:
        raise bad_model(folder, f"has a {SPEECH_TOKENIZER} that does not load")
    talker = module.config.talker_config
    if module.config.tts_model_type == "custom_voice" and not module.supported_speakers:
        raise bad_model(folder, "has no voices: its spk_id is empty")
    if max(module.tokenizer.get_vocab().values(), default=0) >= talker.text_vocab_size:
        raise bad_model(folder, f"has {talker.text_vocab_size} tokens of text, and its tokenizer has more")
    decoder = module.speech_tokenizer.decoder
    if decoder.config.num_quantizers != talker.num_code_groups:
        raise bad_model(folder, f"has {talker.num_code_groups} codes a frame, and its {SPEECH_TOKENIZER} takes others")
    leaves: Any = tree_flatten(decoder.parameters())
    rows = min((value.shape[0] for name, value in leaves if name.endswith("codebook.embed.weight")), default=0)
    codes = max(talker.vocab_size - _SUPPRESSED_CODES, talker.code_predictor_config.vocab_size)
    if rows < codes:
        raise bad_model(folder, f"has {codes} codes, and its {SPEECH_TOKENIZER} has {rows}")
