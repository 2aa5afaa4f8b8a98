"""Images in chat completions, with OpenAI's own client, on a tiny model with random weights that sees."""

import base64
import io
from pathlib import Path
from typing import Any

import openai
import pytest
from openai import OpenAI

from support.http.http_server import Server
from support.media.shown_images import pixels

pytestmark = pytest.mark.slow


def png(seed: int) -> str:
    file = io.BytesIO()
    pixels(seed).save(file, "PNG")
    return f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}"


def ask(server: Server, folder: Path, *urls: str) -> Any:
    images = [{"type": "image_url", "image_url": {"url": url, "detail": "high"}} for url in urls]
    content: Any = [{"type": "text", "text": "What is it?"}, *images]
    client = OpenAI(base_url=f"{server.url}/v1", api_key="any", max_retries=0)
    return client.chat.completions.create(
        model=str(folder),
        messages=[{"role": "user", "content": content}],
        max_tokens=4,
        temperature=0,
        logprobs=True,
        extra_body={"ignore_eos": True},
    )


def test_images_are_seen(seeing_server: Server, seeing_folder: Path) -> None:
    none, one, two = (ask(seeing_server, seeing_folder, *map(png, range(count))) for count in range(3))
    assert none.usage.prompt_tokens < one.usage.prompt_tokens < two.usage.prompt_tokens
    other = ask(seeing_server, seeing_folder, png(7))
    assert other.usage.prompt_tokens == one.usage.prompt_tokens
    first, second = (answer.choices[0].logprobs.content[0].logprob for answer in (one, other))
    assert first != second
    assert (
        ask(seeing_server, seeing_folder, png(0)).usage.prompt_tokens_details.cached_tokens > none.usage.prompt_tokens
    )


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("data:image/png;base64,iVBORw0KGgo=", "not a supported image"),
        ("https://example.com/cat.png", "--media-urls"),
        ("file:///etc/passwd", "--media-dir"),
        ("cat.png", "data URI"),
    ],
)
def test_an_image_that_cannot_be_had_is_named(
    seeing_server: Server, seeing_folder: Path, url: str, problem: str
) -> None:
    with pytest.raises(openai.BadRequestError, match=problem) as failure:
        ask(seeing_server, seeing_folder, png(0), url)
    assert failure.value.param and failure.value.param.startswith("messages[0].content[2]")
    assert failure.value.param in failure.value.message
