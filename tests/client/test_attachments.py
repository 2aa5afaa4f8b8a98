"""Images and sounds that the client sends along."""

from pathlib import Path

import pytest

from lmwire import audio_part, image_part, media


def test_a_file_goes_along_with_its_content(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"content")
    assert media(path) == media(str(path)) == media(b"content") == {"data": "Y29udGVudA=="}


def test_parts_say_what_they_are() -> None:
    assert image_part(b"") == {"type": "image", "media": {"data": ""}}
    assert audio_part(b"") == {"type": "audio", "media": {"data": ""}}


def test_a_file_that_cannot_be_read_is_an_error_of_its_own(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        image_part(tmp_path / "none.png")
