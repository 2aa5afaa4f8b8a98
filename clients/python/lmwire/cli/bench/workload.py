"""The requests and models that benchmarks measure: the same prompts for both sides, and streams of a fixed length.

Requests do not use the prefix cache: the programs that are compared have none, and each turn must cost the same.
"""

import base64
import io
import json
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from lmwire_protocol import Chat, Generate, ImagePart, JsonSchemaFormat, Media, Message, TextPart

PROMPT_TOKENS: Final = 32
LENGTH_STEP: Final = 37
"""Tokens by which each of some prompts is longer than the one before."""
SCHEMAS: Final = 8
QUESTION: Final = "What is to be seen here?"
IMAGE_SIZE: Final = (448, 448)
SQUARES_SIZE: Final = (16, 16)


def prompt(stream: int, step: int = 0) -> list[int]:
    """Return the prompt of a stream, in token ids that every vocabulary has.

    Args:
        stream: Number of the stream, from 0.
        step: Tokens by which each stream's prompt is longer than that of the one before.
    """
    return [(7 * stream + 3 * position) % 200 for position in range(PROMPT_TOKENS + step * stream)]


def greedy(streams: int, tokens: int, step: int = 0) -> list[Generate]:
    """Return greedy requests.

    Args:
        streams: Number of requests, each with another prompt.
        tokens: Length of each answer, in tokens.
        step: Tokens by which each prompt is longer than the one before.
    """
    return [Generate(prompt=prompt(stream, step), max_tokens=tokens, cache="off") for stream in range(streams)]


def ignoring_eos(streams: int, tokens: int) -> list[Generate]:
    """Return greedy requests that go on after an eos token, for models that have one: a grammar needs one.

    Args:
        streams: Number of requests, each with another prompt.
        tokens: Length of each answer, in tokens.
    """
    return [replace(request, ignore_eos=True) for request in greedy(streams, tokens)]


def long_prompt(prompt_tokens: int, tokens: int) -> Generate:
    """Return a greedy request with a long prompt.

    Args:
        prompt_tokens: Length of the prompt, in tokens.
        tokens: Length of the answer, in tokens.
    """
    return Generate(prompt=[(5 * n) % 199 for n in range(prompt_tokens)], max_tokens=tokens, cache="off")


def mixed_samplers(streams: int, tokens: int) -> list[Generate]:
    """Return requests that all have different samplers and seeds.

    Args:
        streams: Number of requests, each with another prompt.
        tokens: Length of each answer, in tokens.
    """
    return [
        Generate(
            prompt=prompt(stream),
            max_tokens=tokens,
            temperature=0.5 + stream / 40,
            top_p=1 - stream / 80,
            top_k=(0, 20, 40)[stream % 3],
            min_p=(0.0, 0.02)[stream % 2],
            seed=stream,
            cache="off",
        )
        for stream in range(streams)
    ]


def structured(streams: int, tokens: int) -> list[Generate]:
    """Return requests for JSON without end: lists of small objects, each of one of `SCHEMAS` schemas.

    Args:
        streams: Number of requests, each with another prompt.
        tokens: Length of each answer, in tokens.
    """
    requests = ignoring_eos(streams, tokens)
    return [replace(request, format=_endless_json(stream % SCHEMAS)) for stream, request in enumerate(requests)]


def with_logprobs(requests: list[Generate], count: int) -> list[Generate]:
    """Return the same requests, with log-probabilities and 5 alternatives for the first ones.

    Args:
        requests: Requests without log-probabilities.
        count: Number of requests that ask for them.
    """
    return [replace(request, logprobs=True, top_logprobs=5) for request in requests[:count]] + requests[count:]


def image_file(number: int) -> bytes:
    """Return a PNG file of coloured squares, different for each number."""
    from random import Random

    import PIL.Image

    pixels = Random(number).randbytes(3 * SQUARES_SIZE[0] * SQUARES_SIZE[1])
    small = PIL.Image.frombytes("RGB", SQUARES_SIZE, pixels)
    small.resize(IMAGE_SIZE, PIL.Image.Resampling.NEAREST).save(file := io.BytesIO(), "PNG")
    return file.getvalue()


def image_chat(number: int, tokens: int, question: str = QUESTION) -> Chat:
    """Return a greedy chat about an image.

    Args:
        number: Number of the image.
        tokens: Length of the answer, in tokens.
        question: The question about it.
    """
    image = ImagePart(media=Media(data=base64.b64encode(image_file(number)).decode()))
    message = Message(role="user", content=[image, TextPart(text=question)])
    return Chat(messages=[message], max_tokens=tokens, ignore_eos=True)


def text_prompt(name: str) -> str:
    """Return a prompt of a few sentences. Its first words, the name, are like no other's."""
    return f"{name} is the number of this question. " + "Tell me how a program talks to another one. " * 4


def text_chat(prompt: str, tokens: int) -> Chat:
    """Return a greedy chat.

    Args:
        prompt: The user's message.
        tokens: Length of the answer, in tokens.
    """
    return Chat(messages=[Message(role="user", content=prompt)], max_tokens=tokens)


def _endless_json(variant: int) -> JsonSchemaFormat:
    properties = {
        f"name_{variant}": {"type": "string", "maxLength": 16},
        "age": {"type": "integer", "minimum": 0, "maximum": 120 + variant},
        "kind": {"enum": ["red", "green", "blue"]},
    }
    item = {"type": "object", "properties": properties, "required": [*properties], "additionalProperties": False}
    return JsonSchemaFormat({"type": "array", "items": item, "minItems": 100_000})


def copy_without_eos(folder: Path, copy: Path, context: int | None = None) -> Path:
    """Make a copy of a model without an eos token, by links, and return its folder.

    Speeds can be compared only between streams of one length, and without an eos token all have the length that they
    were asked for.

    Args:
        folder: The model folder.
        copy: An empty folder.
        context: Context length of the copy, in tokens. None keeps the model's own.
    """
    for file in folder.iterdir():
        if file.name not in (
            "config.json",
            "generation_config.json",
            "tokenizer_config.json",
            "special_tokens_map.json",
        ):
            (copy / file.name).symlink_to(file.resolve())
    for name, field in (("config.json", "eos_token_id"), ("tokenizer_config.json", "eos_token")):
        config = json.loads((folder / name).read_text())
        config.pop(field, None)
        if context is not None and name == "config.json":
            config["max_position_embeddings"] = context
        (copy / name).write_text(json.dumps(config))
    return copy
