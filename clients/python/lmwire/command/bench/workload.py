"""What is measured: the same prompts for both sides, and a model that never ends a stream early.

Nothing is remembered of the requests: what is compared with has no cache, and each turn is to cost what the first did.
"""

import base64
import io
import json
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from lmwire_protocol import Chat, Generate, ImagePart, JsonSchemaFormat, Media, Message, TextPart

PROMPT_TOKENS: Final = 32
SCHEMAS: Final = 8
QUESTION: Final = "What is to be seen here?"
PICTURE: Final = (448, 448)
SQUARES: Final = (16, 16)


def prompt(stream: int) -> list[int]:
    """Token ids that every vocabulary has."""
    return [(7 * stream + 3 * position) % 200 for position in range(PROMPT_TOKENS)]


def greedy(streams: int, tokens: int) -> list[Generate]:
    """As many greedy requests as `streams`."""
    return [Generate(prompt=prompt(stream), max_tokens=tokens, cache="off") for stream in range(streams)]


def plain(streams: int, tokens: int) -> list[Generate]:
    """The same for a model that has an end-of-turn token, without which there are no grammars."""
    return [replace(request, ignore_eos=True) for request in greedy(streams, tokens)]


def long(prompt_tokens: int, tokens: int) -> Generate:
    """A greedy request with so long a prompt."""
    return Generate(prompt=[(5 * n) % 199 for n in range(prompt_tokens)], max_tokens=tokens, cache="off")


def mixed(streams: int, tokens: int) -> list[Generate]:
    """Requests of which no two have the same sampler or seed."""
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
    """Such requests for JSON that goes on for ever: lists of small objects, of one schema out of `SCHEMAS`."""
    return [
        replace(request, format=_endless(stream % SCHEMAS)) for stream, request in enumerate(plain(streams, tokens))
    ]


def with_logprobs(requests: list[Generate], count: int) -> list[Generate]:
    """The same requests, of which the first `count` ask for log-probabilities and 5 alternatives."""
    return [replace(request, logprobs=True, top_logprobs=5) for request in requests[:count]] + requests[count:]


def picture(number: int) -> bytes:
    """A PNG of coloured squares, others for each number."""
    from random import Random

    import PIL.Image

    small = PIL.Image.frombytes("RGB", SQUARES, Random(number).randbytes(3 * SQUARES[0] * SQUARES[1]))
    small.resize(PICTURE, PIL.Image.Resampling.NEAREST).save(file := io.BytesIO(), "PNG")
    return file.getvalue()


def seen(number: int, tokens: int, question: str = QUESTION) -> Chat:
    """A greedy question about a picture, whose answer goes on to so many tokens."""
    image = ImagePart(media=Media(data=base64.b64encode(picture(number)).decode()))
    message = Message(role="user", content=[image, TextPart(text=question)])
    return Chat(messages=[message], max_tokens=tokens, ignore_eos=True)


def prose(name: str) -> str:
    """A prompt of a few sentences, which begins like no other."""
    return f"{name} is the number of this question. " + "Tell me how a program talks to another one. " * 4


def asked(prompt: str, tokens: int) -> Chat:
    """The prompt as a greedy request."""
    return Chat(messages=[Message(role="user", content=prompt)], max_tokens=tokens)


def _endless(variant: int) -> JsonSchemaFormat:
    properties = {
        f"name_{variant}": {"type": "string", "maxLength": 16},
        "age": {"type": "integer", "minimum": 0, "maximum": 120 + variant},
        "kind": {"enum": ["red", "green", "blue"]},
    }
    item = {"type": "object", "properties": properties, "required": [*properties], "additionalProperties": False}
    return JsonSchemaFormat({"type": "array", "items": item, "minItems": 100_000})


def without_end(folder: Path, copy: Path, context: int | None = None) -> Path:
    """Makes `copy` the same model without an end-of-turn token, by links, and returns it.

    Streams of one length are the only ones whose speeds can be compared. `context` is how many tokens its context
    holds; the model's own when None.
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
