"""Media that a model cannot take are refused with the part of the request that is at fault, and nothing else ends."""

import io

import PIL.Image
import pytest

from lmwire_protocol import AudioPart, Chat, ImagePart, Media, Message, RequestError, TextPart, Tokenize
from lmwire_worker.generation.runner import GenerationRunner
from lmwire_worker.multimodal.media_input import MediaInput
from lmwire_worker.multimodal.placeholders import find_layout
from support.media.shown_images import image, image_of, said, shown
from support.runners.generation_runners import Driver, RunnerOf, ask, gather

pytestmark = pytest.mark.slow

ONE = image(1)


def refused(runner: GenerationRunner, *parts: str | ImagePart, **fields: object) -> RequestError:
    request = shown(*parts, **fields)
    with pytest.raises(RequestError) as error:
        runner.add(0, request, 0, prepared=gather(runner, request))
    assert ask(runner, shown("Well?"))[0].error is None
    return error.value


def wide() -> ImagePart:
    file = io.BytesIO()
    PIL.Image.new("RGB", (500, 2)).save(file, "PNG")
    return image_of(file.getvalue())


def test_a_broken_image_ends_its_own_request_with_its_path(runner: GenerationRunner) -> None:
    error = refused(runner, "What is on ", ONE, " and ", image_of(b"no image"))
    assert (error.code, error.field) == ("invalid_request", "messages[0].content[3].media.data")
    assert error.message.startswith("messages[0].content[3].media.data: ")


def test_an_image_that_the_processor_refuses_has_its_path(runner_of: RunnerOf) -> None:
    error = refused(runner_of("qwen2_5_vl"), wide(), "What is it?")
    assert (error.code, error.field) == ("invalid_request", "messages[0].content[0].media")
    assert "aspect ratio" in error.message


def test_a_placeholder_token_in_a_text_is_refused_beside_an_image(runner: GenerationRunner) -> None:
    assert runner.media is not None
    error = refused(runner, f"What is {runner.media.placeholders['image']}?", ONE)
    assert (error.code, error.field) == ("invalid_request", "messages")
    assert "2 places for images" in error.message


def test_without_an_image_a_placeholder_token_is_text(runner: GenerationRunner) -> None:
    assert runner.media is not None
    (answer,) = ask(runner, shown(f"What is {runner.media.placeholders['image']}?"))
    assert answer.error is None


def test_a_token_for_a_part_of_an_image_in_a_text_is_refused(runner_of: RunnerOf) -> None:
    error = refused(runner_of("gemma3"), ONE, "What is <image_soft_token>?")
    assert (error.code, error.field) == ("invalid_request", "messages")


def test_a_template_that_drops_an_image_is_refused(runner: GenerationRunner) -> None:
    template = "{% for message in messages[1:] %}{{ message.content }}{% endfor %}Answer:"
    error = refused(runner, ONE, "What is it?", chat_template=template)
    assert "and 1 images" in error.message


def test_a_prompt_that_ends_in_an_image_is_refused() -> None:
    media_input = MediaInput(b"0" * 32, "<image>", [7, 7], {})
    with pytest.raises(RequestError, match="ends in an image"):
        find_layout([1, 7, 7], [media_input])


def test_a_prompt_with_images_is_not_cut(runner: GenerationRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    long = "on and on " * 2000
    error = refused(runner, ONE, long, truncate="left")
    assert (error.code, error.field) == ("unsupported", "truncate")
    assert refused(runner, ONE, long).code == "context_overflow"


def test_other_requests_go_on_beside_a_refused_one(runner: GenerationRunner) -> None:
    (alone,) = ask(runner, shown(ONE, "What is it?"))
    driver = Driver(runner)
    driver.add(0, shown(ONE, "What is it?"))
    driver.steps(3)
    with pytest.raises(RequestError):
        driver.add(1, shown(image_of(b"")))
    assert driver.finish()[0].token_ids == alone.token_ids


def test_a_model_without_hearing_gets_a_note_for_a_sound(runner: GenerationRunner) -> None:
    parts = [TextPart(text="Hear "), AudioPart(media=Media(data="AAAA")), ONE]
    request = Tokenize(messages=[Message(role="user", content=parts)])
    _, text = runner.tokenize(request, gather(runner, request))
    assert "[1 sound was attached]" in text
    strict = Chat(messages=[said("Hi."), Message(role="user", content=parts)], strict_media=True)
    with pytest.raises(RequestError, match="takes no sounds") as error:
        runner.add(0, strict, 0, prepared=gather(runner, strict))
    assert error.value.field == "messages[1].content[1]"
