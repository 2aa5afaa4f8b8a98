"""Conversations with images and sounds for text models, and the answers of mlx-vlm itself."""

import base64
import io
from functools import cache
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
import PIL.Image
from mlx_vlm.generate import generate_step
from mlx_vlm.utils import load_audio, load_model, load_processor

from lmwire_protocol import AudioPart, Chat, ImagePart, Media, Message, TextPart
from support.media.reading_media import in_base64, wav
from support.runners.generation_runners import Answer

Part = str | ImagePart | AudioPart


def pixels(seed: int, width: int = 96, height: int = 64) -> PIL.Image.Image:
    """Return an image of noise."""
    return PIL.Image.fromarray(np.random.default_rng(seed).integers(0, 256, (height, width, 3), np.uint8))


def image(seed: int, width: int = 96, height: int = 64) -> ImagePart:
    """Return an image of noise as a PNG."""
    file = io.BytesIO()
    pixels(seed, width, height).save(file, "PNG")
    return image_of(file.getvalue())


def image_of(content: bytes) -> ImagePart:
    """Return an image part with a file's content."""
    return ImagePart(media=Media(data=in_base64(content)))


def sound(seed: int, seconds: float = 0.96, rate: int = 16_000) -> AudioPart:
    """Return a sound of noise as a WAV."""
    return sound_of(wav(np.random.default_rng(seed).normal(0, 0.1, round(seconds * rate)).clip(-1, 1), rate))


def sound_of(content: bytes) -> AudioPart:
    """Return an audio part with a file's content."""
    return AudioPart(media=Media(data=in_base64(content)))


def said(*parts: Part) -> Message:
    """Return a user's message."""
    return Message(role="user", content=[TextPart(text=part) if isinstance(part, str) else part for part in parts])


def shown(*parts: Part, **fields: Any) -> Chat:
    """Return a conversation of one message."""
    fields = {"max_tokens": 12, **fields}
    return Chat(messages=[said(*parts)], **fields)


def answered(request: Chat, answer: Answer, *parts: Part) -> list[Message]:
    """Return a conversation's messages with its answer and the user's next message."""
    return [*request.messages, Message(role="assistant", content=answer.text), said(*parts)]


@cache
def stock(folder: Path) -> tuple[Any, Any]:
    """Return the model and its processor as mlx-vlm itself loads them."""
    return load_model(folder), load_processor(folder, add_detokenizer=False)


def expected(folder: Path, request: Chat) -> list[int]:
    """Return the tokens that mlx-vlm generates by greedy decoding, including the token that ends the turn."""
    return [token for token, _ in expected_steps(folder, request)]


def expected_steps(folder: Path, request: Chat) -> list[tuple[int, list[float]]]:
    """Return the tokens of `expected`, each with the log-probabilities of the whole vocabulary at its place."""
    model, processor = stock(folder)
    parts = [part for message in request.messages for part in _parts(message)]
    images = [PIL.Image.open(_file(part)) for part in parts if isinstance(part, ImagePart)]
    rate = getattr(getattr(processor, "feature_extractor", None), "sampling_rate", 0)
    sounds = [load_audio(_file(part), rate) for part in parts if isinstance(part, AudioPart)]
    messages = [
        {"role": message.role, "content": [_plain(part) for part in _parts(message)]} for message in request.messages
    ]
    text = processor.tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    given = ({"images": images} if images else {}) | ({"audio": sounds} if sounds else {})
    inputs = dict(processor(text=[text], add_special_tokens=False, return_tensors="mlx", **given))
    tokens, pixel_values = mx.array(inputs.pop("input_ids")), inputs.pop("pixel_values", None)
    mask = mx.array(inputs.pop("attention_mask"))
    limit: Any = request.max_tokens
    steps = generate_step(tokens, model, pixel_values, mask, max_tokens=limit, temperature=0.0, **inputs)
    return [(int(token), np.array(logprobs).flatten().tolist()) for token, logprobs in steps]


def _parts(message: Message) -> list[Any]:
    content: Any = message.content
    return [TextPart(text=content)] if isinstance(content, str) else content


def _file(part: ImagePart | AudioPart) -> Any:
    assert part.media.data is not None
    return io.BytesIO(base64.b64decode(part.media.data))


def _plain(part: Any) -> dict[str, str]:
    if isinstance(part, TextPart):
        return {"type": "text", "text": part.text}
    return {"type": "image" if isinstance(part, ImagePart) else "audio"}
