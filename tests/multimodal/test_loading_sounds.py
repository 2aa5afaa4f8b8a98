"""Models that take sounds, and the text in place of sounds for other models."""

from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
import pytest

from lmwire_protocol import Chat, Message, RequestError, TextPart
from lmwire_worker.generation.runner import GenerationRunner
from lmwire_worker.multimodal import audio_input, parity_check, prefill
from lmwire_worker.multimodal.media_input import MediaInput
from lmwire_worker.multimodal.network import MultimodalNetwork
from random_vision import HEARING, write_vision_model
from support.media.shown_images import expected, image, image_of, shown, sound, sound_of
from support.nightly import nightly_but
from support.runners.generation_runners import FolderOf, RunnerOf, ask, gather, open_runner

pytestmark = pytest.mark.slow

EACH = nightly_but({"qwen3_omni_moe"}, HEARING)


def rendered(runner: GenerationRunner, request: Chat) -> str:
    gathering = gather(runner, request)
    media = gathering.media.results() if gathering.media else ()
    return runner.preparer.read_prompt(request, media).text


def deaf(runner: GenerationRunner) -> None:
    """Check that a runner takes images and no sounds."""
    assert runner.model.capabilities == ["generate", "chat", "tokenize", "images"]
    broken = shown("Hear ", sound_of(b"no sound"), "!")
    assert rendered(runner, broken).count("[1 sound was attached]") == 1
    strict = shown("Hear ", sound(1), "!", strict_media=True)
    with pytest.raises(RequestError, match="takes no sounds") as error:
        runner.add(0, strict, 0, prepared=gather(runner, strict))
    assert (error.value.code, error.value.field) == ("unsupported", "messages[0].content[1]")
    (answer,) = ask(runner, shown("What is on ", image(1), "?"))
    assert answer.error is None


def test_a_vision_model_gets_a_note_for_a_sound(runner_of: RunnerOf) -> None:
    deaf(runner_of("qwen2_5_vl"))


@pytest.mark.parametrize("family", EACH)
def test_a_model_with_other_sound_features_than_in_mlx_vlm_takes_only_images(
    folder_of: FolderOf, monkeypatch: pytest.MonkeyPatch, family: str
) -> None:
    encode = prefill.encode

    def encode_sounds_backwards(network: MultimodalNetwork, media_input: MediaInput) -> None:
        sounds = "input_features" in (media_input.inputs or {})
        encode(network, media_input)
        if sounds:
            assert media_input.features is not None
            media_input.set_features(prefill.Features(media_input.features.embeds[:, ::-1], []))

    monkeypatch.setattr(prefill, "encode", encode_sounds_backwards)
    deaf(open_runner(folder_of(family)))


@pytest.mark.parametrize("family", EACH)
def test_a_model_whose_sound_encoder_fails_takes_only_images(
    folder_of: FolderOf, monkeypatch: pytest.MonkeyPatch, family: str
) -> None:
    encode = prefill.encode

    def fail_on_sounds(network: MultimodalNetwork, media_input: MediaInput) -> None:
        if "input_features" in (media_input.inputs or {}):
            raise RuntimeError("no such kernel")
        encode(network, media_input)

    monkeypatch.setattr(prefill, "encode", fail_on_sounds)
    deaf(open_runner(folder_of(family)))


@pytest.mark.parametrize("family", EACH)
def test_a_processor_without_a_maximum_sound_length_gets_no_sounds(
    folder_of: FolderOf, monkeypatch: pytest.MonkeyPatch, family: str
) -> None:
    monkeypatch.setattr(audio_input, "count_features", lambda media_input: np.ones(2))
    deaf(open_runner(folder_of(family)))


def test_an_audio_model_of_mlx_vlm_gets_a_note_for_an_image(tmp_path: Path) -> None:
    whole = {"use_bidirectional_attention": "vision"}  # its images must be computed in one chunk
    folder = write_vision_model(tmp_path / "model", "gemma4_unified", text_config=whole)
    runner = open_runner(folder)
    assert runner.model.capabilities == ["generate", "chat", "tokenize", "sounds"]
    assert "[1 image was attached]" in rendered(runner, shown(image_of(b"no image"), "?"))
    strict = shown(image(1), "?", strict_media=True)
    with pytest.raises(RequestError, match="takes no images"):
        runner.add(0, strict, 0, prepared=gather(runner, strict))
    question = shown("What is said in ", sound(1), "?", ignore_eos=True)
    (answer,) = ask(runner, question)
    assert answer.token_ids == expected(folder, question)


@pytest.mark.parametrize("family", EACH)
def test_a_model_that_takes_neither_as_it_does_in_mlx_vlm_is_refused(
    folder_of: FolderOf, monkeypatch: pytest.MonkeyPatch, family: str
) -> None:
    see = MultimodalNetwork.forward_embeddings

    def see_mirrored(self: MultimodalNetwork, tokens: mx.array, cache: list[Any], **inputs: Any) -> mx.array:
        inputs["inputs_embeds"] = inputs["inputs_embeds"][..., ::-1]
        return see(self, tokens, cache, **inputs)

    monkeypatch.setattr(MultimodalNetwork, "forward_embeddings", see_mirrored)
    with pytest.raises(RequestError, match="not those that mlx-vlm computes") as error:
        open_runner(folder_of(family))
    assert error.value.code == "unsupported"


@pytest.mark.parametrize("family", EACH)
def test_a_model_that_hears_and_is_wrong_in_a_batch_answers_one_at_a_time(
    folder_of: FolderOf, monkeypatch: pytest.MonkeyPatch, family: str
) -> None:
    monkeypatch.setattr(parity_check.ParityCheck, "supports_batching", lambda self: False)
    runner = open_runner(folder_of(family))
    assert runner.max_batch_size == 1
    assert "sounds" in runner.model.capabilities
    assert ask(runner, shown(sound(1), "What is it?"))[0].error is None


@pytest.mark.parametrize("family", EACH)
def test_sounds_keep_their_places_among_the_texts(runner_of: RunnerOf, family: str) -> None:
    runner = runner_of(family)
    parts = [TextPart(text="Hear "), sound(1), TextPart(text=" and see "), image(1), TextPart(text=".")]
    request = Chat(messages=[Message(role="user", content=parts)], max_tokens=4)
    text = runner.preparer.read_prompt(request, gather(runner, request).media.results()).text
    assert "attached" not in text
    media_inputs = gather(runner, request).media.results()
    sound_text, seen = (media_input.text for media_input in media_inputs)
    before, _, after = text.partition(sound_text)
    assert before.split("Hear ")[1] in ("", "<|audio>")  # some templates write a mark
    assert seen in after.partition(" and see ")[2]
