"""Images and recordings whose content the client sends."""

from pathlib import Path

import pytest

from lmwire import audio_part, image_part, media


def test_the_content_of_a_file_is_sent(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"content")
    assert media(path) == media(str(path)) == media(b"content") == {"data": "Y29udGVudA=="}


def test_parts_name_their_type() -> None:
    assert image_part(b"") == {"type": "image", "media": {"data": ""}}
    assert audio_part(b"") == {"type": "audio", "media": {"data": ""}}


def test_a_file_that_cannot_be_read_raises_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        image_part(tmp_path / "none.png")
