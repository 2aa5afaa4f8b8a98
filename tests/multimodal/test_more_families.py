"""Further families: which are shown images, as the trial at their load has it, and which are refused, and why."""

from pathlib import Path

import pytest

from lmwire_protocol import RequestError
from support.media.shown_images import image, shown
from support.models.vision_families import MORE, write_another_vision_model
from support.nightly import nightly_but
from support.runners.generation_runners import ask, ask_alone, chat, open_runner

pytestmark = pytest.mark.slow

REFUSED = {
    "llama4": "it keeps a ChunkedKVCache",
    "llava_next": "places of the",
    "paligemma": "its processor writes several",
}


SAMPLE = {"glm4v", "idefics3", "llava"}
"""Families with positions in three dimensions, with tiles, and with neither."""


@pytest.mark.parametrize("family", nightly_but(SAMPLE, sorted(MORE.keys() - REFUSED.keys())))
def test_a_family_is_shown_images_among_texts(family: str, tmp_path: Path) -> None:
    runner = open_runner(write_another_vision_model(tmp_path / family, family))
    assert "images" in runner.model.capabilities
    assert runner.max_batch_size > 1
    one, other = image(1), image(2, 64, 96)
    pairs = [(one, other), (other, one)]
    requests = [*(shown("On ", first, " and ", second, "?") for first, second in pairs), chat("On?", max_tokens=12)]
    alone = ask_alone(runner, *requests)
    runner.clear_cache()
    together = ask(runner, *requests)
    assert [answer.error for answer in together] == [None] * 3
    assert [answer.token_ids for answer in together] == [answer.token_ids for answer in alone]
    assert len({tuple(answer.token_ids) for answer in alone}) == 3


@pytest.mark.parametrize("family", REFUSED)
def test_a_family_that_would_see_something_else_is_refused(family: str, tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="takes images in a way that this worker does not support: ") as error:
        open_runner(write_another_vision_model(tmp_path / family, family))
    assert error.value.code == "unsupported"
    assert REFUSED[family] in error.value.message
