"""Images: the results for readable ones, and the errors for all others."""

import random
from typing import Any

import PIL.Image
import pytest

from lmwire_protocol import Media
from lmwire_worker.media import Image, MediaPolicy
from lmwire_worker.media_decoder import images
from lmwire_worker.media_decoder.pipes import RefusedError
from support.media.reading_media import animated, bomb, encoded, in_base64, picture, read_all, read_image, refusal

pytestmark = pytest.mark.slow

RED, WHITE = (255, 0, 0), (255, 255, 255)


@pytest.mark.parametrize("format", ["PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF"])
def test_the_common_formats_are_read(format: str) -> None:
    image = read_image(encoded(picture(), format))
    assert image.size == (8, 6)
    assert image.getpixel((3, 3)) == pytest.approx(RED, abs=4)


def test_the_smallest_image_is_an_image() -> None:
    assert read_image(encoded(picture(size=(1, 1)))).getpixel((0, 0)) == RED


@pytest.mark.parametrize(
    ("image", "options"),
    [
        (picture("CMYK", color=(0, 255, 255, 0)), {"format": "JPEG", "quality": 95}),
        (picture("CMYK", color=(0, 255, 255, 0)), {"format": "TIFF"}),
        (picture("P", color=0), {}),
        (picture("RGBA", color=(255, 0, 0, 255)), {}),
    ],
    ids=["cmyk jpeg", "cmyk tiff", "palette", "rgba"],
)
def test_other_colours_become_red_green_and_blue(image: PIL.Image.Image, options: dict[str, Any]) -> None:
    if image.mode == "P":
        image.putpalette(RED)
    shown = read_image(encoded(image, **options)).getpixel((3, 3))
    assert isinstance(shown, tuple)
    assert all(abs(got - meant) < 8 for got, meant in zip(shown, RED, strict=True))


def test_16_bits_of_grey_are_scaled_and_not_cut() -> None:
    assert read_image(encoded(picture("I;16", color=0x8000))).getpixel((3, 3)) == (128, 128, 128)


def test_what_is_transparent_is_white() -> None:
    assert read_image(encoded(picture("RGBA", color=(0, 0, 0, 0)))).getpixel((3, 3)) == WHITE
    assert read_image(encoded(picture("RGBA", color=(255, 0, 0, 128)))).getpixel((3, 3)) == (255, 127, 127)


def test_an_image_is_turned_as_its_camera_was_held() -> None:
    image, exif = picture(), PIL.Image.Exif()
    image.paste("blue", (0, 0, 8, 3))  # the upper half
    exif[0x0112] = 6  # to be turned right: what is above goes to the right
    upright = read_image(encoded(image, exif=exif))
    assert upright.size == (6, 8)
    assert [upright.getpixel((x, 4)) for x in (0, 5)] == [RED, (0, 0, 255)]


def test_a_broken_note_on_how_the_camera_was_held_spoils_no_image() -> None:
    content = encoded(picture(), "JPEG", exif=b"Exif\0\0II*\0\xff\xff\xff\xff")
    assert read_image(content).size == (8, 6)


def test_a_cameras_jpeg_with_a_preview_behind_it_is_the_picture_itself() -> None:
    content = encoded(picture(), "MPO", save_all=True, append_images=[picture(size=(2, 2), color="blue")])
    assert read_image(content).size == (8, 6)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (encoded(picture(size=(200, 200)))[:-60], "is a damaged PNG image"),
        (encoded(picture(size=(200, 200)), "JPEG")[:-60], "is a damaged JPEG image"),
        (encoded(picture())[:20], "is not a supported image, or is corrupted"),
        (bomb(10_000, 10_000), "has 10,000 x 10,000 pixels; at most 64,000,000 in all are taken"),
        (bomb(100_000, 100_000), "has 100,000 x 100,000 pixels; at most 64,000,000 in all are taken"),
        (bomb(0, 0), "is not a supported image, or is corrupted"),
        (animated("GIF"), "holds several pictures; send the one that is meant"),
        (animated("PNG"), "holds several pictures"),
        (animated("WEBP"), "holds several pictures"),
        (animated("TIFF"), "holds several pictures"),
        (b'<svg xmlns="http://www.w3.org/2000/svg"/>', "send PNG, JPEG, WEBP, GIF, BMP or TIFF"),
        (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 10 10\n", "is not a supported image"),
        (b"\x00\x00\x00\x18ftypheic", "is not a supported image"),
        (b"just text", "is not a supported image"),
        (encoded(picture("F", color=0.5), "TIFF"), "has pixels of 32 bits; send 8 or 16"),
    ],
    ids=[
        "truncated png",
        "truncated jpeg",
        "truncated header",
        "100 megapixels",
        "10 gigapixels",
        "no pixels",
        "animated gif",
        "animated png",
        "animated webp",
        "tiff of two pages",
        "svg",
        "eps",
        "heic",
        "text",
        "32 bits",
    ],
)
def test_what_is_no_image_that_can_be_read_is_refused(content: bytes, problem: str) -> None:
    refused = refusal("image", Media(data=in_base64(content)))
    assert problem in refused.message
    assert (refused.code, refused.retryable) == ("invalid_request", False)


def test_the_images_of_a_request_have_a_limit_together() -> None:
    media = Media(data=in_base64(encoded(picture(size=(10, 10)))))
    policy = MediaPolicy(max_pixels=100, max_request_pixels=250)
    assert len(read_all([("image", media)] * 2, policy)) == 2
    with pytest.raises(Exception, match=r"brings the request's images to 300 pixels; at most 250 are taken"):
        read_all([("image", media)] * 3, policy)


def test_a_size_is_judged_before_a_pixel_is_decoded() -> None:
    damaged_behind_its_header = bomb(101, 1)
    problem = "has 101 x 1 pixels; at most 100 in all are taken"
    assert (
        problem
        in refusal("image", Media(data=in_base64(damaged_behind_its_header)), MediaPolicy(max_pixels=100)).message
    )


def test_equal_files_have_equal_digests_and_others_do_not() -> None:
    one, same, other = (Media(data=in_base64(encoded(picture(color=color)))) for color in ("red", "red", "blue"))
    images = read_all([("image", medium) for medium in (one, same, other)])
    digests = [image.digest for image in images]
    assert digests[0] == digests[1] != digests[2]


def test_images_come_in_the_order_of_the_request() -> None:
    sizes = [(width, 3) for width in range(1, 30)]
    images = read_all([("image", Media(data=in_base64(encoded(picture(size=size))))) for size in sizes])
    assert [image.pixels.size for image in images if isinstance(image, Image)] == sizes


@pytest.mark.parametrize("seed", range(6))
def test_no_damage_does_more_than_end_in_a_refusal_or_an_image(seed: int) -> None:
    chance = random.Random(seed)
    formats = ("PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF")
    whole = encoded(PIL.Image.effect_noise((16, 16), 50).convert("RGB"), formats[seed])
    for _ in range(40):
        content = bytearray(whole)
        for _ in range(chance.randint(1, 8)):
            content[chance.randrange(len(content))] = chance.randrange(256)
        strips: list[bytes] = []
        try:
            images.inspect(bytes(content))
            size = images.decode(bytes(content), strips.append)
        except RefusedError:
            continue
        assert sum(map(len, strips[1:])) == 3 * size["width"] * size["height"]


def test_a_jpeg_has_a_limit_of_segments() -> None:
    whole = encoded(picture(), "JPEG")
    many = whole[:2] + b"\xff\xfe\0\2" * 10_000 + whole[2:]
    assert "has more than 10,000 segments" in refusal("image", Media(data=in_base64(many))).message
    assert read_image(whole[:2] + b"\xff\xfe\0\2" * 9_000 + whole[2:]).size == (8, 6)
