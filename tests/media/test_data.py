"""Media that come inside a request."""

import pytest

from lmwire_protocol import Media
from lmwire_worker.media import MediaPolicy
from lmwire_worker.media.media_refs import MediaKind
from support.media.reading_media import encoded, in_base64, picture, read_all, refusal

PNG = in_base64(encoded(picture()))


@pytest.mark.slow
@pytest.mark.parametrize(
    "data",
    [
        PNG,
        "\n".join(PNG[i : i + 76] for i in range(0, len(PNG), 76)) + "\n",
        f"data:image/png;base64,{PNG}",
        f"DATA:image/PNG;name=red.png;base64,{PNG}",
        f"data:;base64,{PNG}",
        f"data:application/octet-stream;base64,{PNG}",
        f"data:image/jpeg;base64,{PNG}",
    ],
    ids=["plain", "in lines", "data uri", "in capitals", "without a type", "of no known type", "another image type"],
)
def test_base64_is_read_alone_and_in_a_data_uri(data: str) -> None:
    assert len(read_all([("image", Media(data=data))])) == 1


@pytest.mark.parametrize(
    ("kind", "data", "problem"),
    [
        ("image", "", "is empty"),
        ("image", " \n", "is empty"),
        ("image", "data:image/png;base64,", "is empty"),
        ("image", "no base64!", "is not base64"),
        ("image", PNG[:-3], "is not base64"),
        ("image", "ümläut", "is not base64"),
        ("image", f"data:image/png,{PNG}", "is a data URI without base64"),
        ("image", "data:image/png;base64", "is a data URI without base64"),
        ("image", f"data:text/html;base64,{PNG}", "is 'text/html' by its own account"),
        ("image", f"data:audio/wav;base64,{PNG}", "a file of a type image/… is needed"),
        ("sound", f"data:image/png;base64,{PNG}", "a file of a type audio/… is needed"),
        ("sound", PNG, "is not a supported sound"),
    ],
)
def test_what_is_no_data_of_that_kind_is_refused(kind: MediaKind, data: str, problem: str) -> None:
    refused = refusal(kind, Media(data=data))
    assert problem in refused.message
    assert refused.code == "invalid_request"


def test_data_that_are_too_large_are_refused_before_they_are_decoded() -> None:
    policy = MediaPolicy(max_bytes=100)
    assert "has more than the 100 bytes that are taken" in refusal("image", Media(data="!" * 200), policy).message
