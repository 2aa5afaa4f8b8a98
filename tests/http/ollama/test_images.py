"""Images through Ollama's own client, on a tiny model with random weights that sees."""

import io

import ollama
import pytest

from support.http.http_server import Server
from support.http.ollama_http import GREEDY, client, user
from support.media.shown_images import pixels

pytestmark = pytest.mark.slow

BRIEF = {**GREEDY, "num_predict": 2}


def png(seed: int) -> bytes:
    file = io.BytesIO()
    pixels(seed).save(file, "PNG")
    return file.getvalue()


def prompt_tokens(answer: ollama.ChatResponse | ollama.GenerateResponse) -> int:
    assert answer.done and answer.prompt_eval_count
    return answer.prompt_eval_count


def test_each_image_is_part_of_the_prompt(seeing_server: Server) -> None:
    counts = [
        prompt_tokens(client(seeing_server).chat("Sees", [user("What is it?", images=images)], options=BRIEF))
        for images in ([], [png(1)], [png(1), png(2)])
    ]
    assert counts[2] - counts[1] == counts[1] - counts[0] > 0


def test_a_prompt_with_images_is_a_message_with_images(seeing_server: Server) -> None:
    generated = client(seeing_server).generate("Sees", "What is it?", images=[png(1)], options=BRIEF)
    answered = client(seeing_server).chat("Sees", [user("What is it?", images=[png(1)])], options=BRIEF)
    assert (prompt_tokens(generated), generated.response) == (prompt_tokens(answered), answered.message.content)


def test_an_image_that_cannot_be_read_is_named(seeing_server: Server) -> None:
    with pytest.raises(ollama.ResponseError, match=r"^messages\[0\]\.images\[1\]: ") as error:
        client(seeing_server).chat("Sees", [user("What is it?", images=[png(1), b"no image"])])
    assert error.value.status_code == 400
