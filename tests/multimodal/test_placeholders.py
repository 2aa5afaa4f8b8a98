"""The parts that vision is made of, each by itself."""

from collections.abc import Sequence

import mlx.core as mx
import numpy as np
import pytest

from lmwire_protocol import RequestError
from lmwire_worker.generation.caches import flatten_caches
from lmwire_worker.media.noise import noise_image
from lmwire_worker.multimodal.input_builder import MediaInputBuilder, Modality
from lmwire_worker.multimodal.media_input import MediaInput
from lmwire_worker.multimodal.placeholders import expand_placeholders, find_layout
from lmwire_worker.multimodal.rope_delta import RopeDelta

MARK, TONE, START = 7, 8, 3
SIGHT, HEARING = Modality("image", MARK, "@"), Modality("sound", TONE, "~")


def media_input(digest: int, tokens: int = 3) -> MediaInput:
    return MediaInput(bytes([digest]) * 32, f"<{'*' * tokens}>", [MARK] * tokens, {})


def deltas(cache: RopeDelta) -> list[int]:
    return np.array(cache.deltas)[:, 0].tolist()


def test_a_rope_delta_goes_where_its_row_goes() -> None:
    rows = [RopeDelta(mx.array([[-number]])) for number in range(4)]
    batch = RopeDelta.merge(rows[:2])
    batch.extend(RopeDelta.merge(rows[2:]))
    assert deltas(batch) == [0, -1, -2, -3]
    assert deltas(batch.extract(2)) == [-2]
    batch.filter([0, 3])
    assert deltas(batch) == [0, -3]
    assert deltas(RopeDelta()) == [0]


def test_padding_after_a_row_moves_no_rope_delta() -> None:
    batch = RopeDelta(mx.array([[-1], [-2]]))
    batch.prepare(lengths=[3, 1], right_padding=[0, 2])
    batch.finalize()
    assert deltas(batch) == [-1, -2]


def test_a_rope_delta_is_not_cached() -> None:
    assert list(flatten_caches([RopeDelta()])) == []


def test_each_image_has_tokens_of_its_own_name() -> None:
    tokens = [1, START, MARK, MARK, MARK, 2, MARK, MARK, MARK, 4, 5]
    layout = find_layout(tokens, [media_input(1), media_input(2)])
    other = find_layout(tokens, [media_input(1), media_input(3)])
    assert layout is not None
    assert other is not None
    assert [(place.start, place.stop) for place in layout.ranges] == [(2, 5), (6, 9)]
    assert layout.end == 9
    named = layout.cache_keys(tokens)
    assert named[:2] + named[5:6] + named[9:] == [1, START, 2, 4, 5]
    assert all(1 << 56 <= name < 1 << 63 for name in named[2:5] + named[6:9])
    assert named[:6] == other.cache_keys(tokens)[:6]
    assert named[6] != other.cache_keys(tokens)[6]
    assert layout.cache_keys(tokens[:4]) == named[:4]
    assert layout.cache_keys([*tokens, 9, 9]) == [*named, 9, 9]


def test_without_images_there_is_nothing_to_find() -> None:
    assert find_layout([1, MARK], []) is None


@pytest.mark.parametrize("tokens", [[1, 2, 3], [1, MARK, 2], [MARK, MARK, MARK, 2, MARK], [1, MARK, MARK, MARK, MARK]])
def test_tokens_of_no_image_are_refused(tokens: list[int]) -> None:
    with pytest.raises(RequestError):
        find_layout(tokens, [media_input(1)])


def test_each_placeholder_becomes_its_image() -> None:
    assert expand_placeholders("a @ b @.", [media_input(1, 1), media_input(2, 2)], [SIGHT]) == "a <*> b <**>."
    with pytest.raises(RequestError, match="2 places for images"):
        expand_placeholders("a @ b @.", [media_input(1)], [SIGHT])


def test_images_of_two_kinds_are_distinguished_wherever_a_template_puts_them() -> None:
    noise = MediaInput(bytes(32), "(~~)", [TONE] * 2, {})
    picked, sounds = [media_input(1), media_input(2)], [noise]
    text = expand_placeholders("~ then @ and @!", [*picked, *sounds], [SIGHT, HEARING])
    assert text == "(~~) then <***> and <***>!"
    layout = find_layout([TONE, TONE, 1, MARK, MARK, MARK, 2, MARK, MARK, MARK, 4], [picked[0], *sounds, picked[1]])
    assert layout is not None
    assert [(place.start, place.media_input) for place in layout.ranges] == [(0, noise), (3, picked[0]), (7, picked[1])]
    with pytest.raises(RequestError, match="0 places for sounds"):
        expand_placeholders("@ @", [*picked, *sounds], [SIGHT, HEARING])
    assert find_layout([TONE, 1, MARK, MARK, MARK, 2], [media_input(1)]) is not None, "no sound was sent: it is text"


class Processor:
    """Processor that makes two tokens of each image, and counts its calls."""

    image_token = "@"

    def __init__(self) -> None:
        self.made = 0
        self.tokenizer = self

    def prepare(self, text: str, images: Sequence[object]) -> dict[str, object]:
        self.made += 1
        return {"input_ids": [[START, MARK, MARK]], "pixel_values": mx.zeros((len(images), 1024))}

    def encode(self, text: str, **_: object) -> list[int]:
        return [int(number) for number in text.split()]

    def decode(self, tokens: list[int], **_: object) -> str:
        return " ".join(map(str, tokens))


def test_an_image_is_processed_once() -> None:
    processor = Processor()
    builder = MediaInputBuilder(processor, processor.prepare)
    builder.add_modality("image", MARK, noise_image())
    before = processor.made
    one, same, other = (builder.build(noise_image(seed)) for seed in (1, 1, 2))
    assert one is same
    assert one is not other
    assert processor.made == before + 2
    assert builder.feature_cache.find(noise_image(1).digest) is one
    assert builder.feature_cache.find(b"unknown") is None


def test_images_are_cached_within_their_budget() -> None:
    processor = Processor()
    builder = MediaInputBuilder(processor, processor.prepare)
    builder.add_modality("image", MARK, noise_image())
    builder.feature_cache.budget = 3 * 4096
    for seed in range(1, 6):
        builder.build(noise_image(seed))
    cached = [builder.feature_cache.find(noise_image(seed).digest) is not None for seed in range(1, 6)]
    assert cached == [False] * 2 + [True] * 3
    assert builder.feature_cache.clear() == 3 * 4096
