"""Files that a request names: only those under the directories that the host allowed, and only files."""

import os
from pathlib import Path
from typing import Any

import pytest

from lmwire_protocol import Media, RequestError
from lmwire_worker.media import MediaPolicy
from lmwire_worker.media.media_error import MediaError
from lmwire_worker.media.sources import read_file
from support.media.reading_media import encoded, picture, read_all, refusal

OUTSIDE = "leads out of the directories that the worker was started with"


@pytest.fixture
def allowed(tmp_path: Path) -> Path:
    """A directory with an image in it and one below, and one beside."""
    directory = tmp_path / "allowed"
    (directory / "below" / "below").mkdir(parents=True)
    for path in (directory / "a.png", directory / "below" / "below" / "b.png", tmp_path / "beside.png"):
        path.write_bytes(encoded(picture()))
    return directory


def refused(path: Path | str, *directories: Path, **limits: Any) -> RequestError:
    return refusal("image", Media(path=str(path)), MediaPolicy(directories, **limits))


@pytest.mark.slow
def test_files_under_the_directories_are_read(allowed: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "c.png").write_bytes(encoded(picture()))
    paths = (
        allowed / "a.png",
        allowed / "below" / "below" / "b.png",
        allowed / "below" / ".." / "a.png",
        other / "c.png",
    )
    assert len(read_all([("image", Media(path=str(path))) for path in paths], MediaPolicy((allowed, other)))) == 4


def test_links_that_stay_inside_are_followed(allowed: Path, tmp_path: Path) -> None:
    (allowed / "link.png").symlink_to("below/below/b.png")
    (allowed / "short").symlink_to(allowed / "below")
    (tmp_path / "way in").symlink_to(allowed)
    for path in ("allowed/link.png", "allowed/short/below/b.png", "way in/a.png"):
        assert read_file(str(tmp_path / path), MediaPolicy((allowed,)))
    assert read_file(str(allowed / "a.png"), MediaPolicy((tmp_path / "way in",)))


def test_a_worker_without_an_allowed_directory_reads_no_file(allowed: Path) -> None:
    error = refused(allowed / "a.png")
    assert error.code == "unsupported"
    assert "start it with --media-dir DIR, or send the file as data" in error.message


def test_a_path_that_leads_out_is_refused(allowed: Path, tmp_path: Path) -> None:
    (tmp_path / "allowed-not").mkdir()
    for path in ("beside.png", "allowed/../beside.png", "allowed/below/../../beside.png", "allowed-not/a.png", "."):
        assert OUTSIDE in refused(f"{tmp_path}/{path}", allowed).message


def test_a_link_that_leads_out_is_refused(allowed: Path, tmp_path: Path) -> None:
    (allowed / "link.png").symlink_to(tmp_path / "beside.png")
    (allowed / "up").symlink_to("..")
    for path in ("link.png", "up/beside.png"):
        assert OUTSIDE in refused(allowed / path, allowed).message


def test_an_error_reveals_nothing_about_files_outside(allowed: Path, tmp_path: Path) -> None:
    there, missing = (refused(tmp_path / name, allowed).message for name in ("beside.png", "missing.png"))
    assert there == missing


def test_a_link_that_is_put_in_a_checked_place_is_not_followed(
    allowed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "b.png").write_bytes(b"secret")
    real = os.path.realpath

    def check_and_then_swap(path: str) -> str:
        checked = real(path)
        if checked.endswith("b.png"):
            (allowed / "below" / "below").rename(allowed / "moved")
            (allowed / "below" / "below").symlink_to(tmp_path / "below")
        return checked

    monkeypatch.setattr(os.path, "realpath", check_and_then_swap)
    with pytest.raises(MediaError, match="cannot be read"):
        read_file(str(allowed / "below" / "below" / "b.png"), MediaPolicy((allowed,)))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("missing.png", "cannot be read: No such file or directory"),
        ("a.png/b.png", "cannot be read: Not a directory"),
        ("below", "is not a regular file"),
        ("empty.png", "is empty"),
        ("text.png", "is not a supported image"),
        ("a\0.png", "cannot be read: embedded null"),
        ("x" * 300, "cannot be read: File name too long"),
    ],
)
def test_what_is_no_readable_image_is_refused(allowed: Path, name: str, problem: str) -> None:
    (allowed / "empty.png").touch()
    (allowed / "text.png").write_text("text")
    error = refused(f"{allowed}/{name}", allowed)
    assert problem in error.message
    assert error.code == "invalid_request"


def test_the_directory_itself_is_no_file(allowed: Path) -> None:
    assert "is not a regular file" in refused(allowed, allowed).message


def test_a_pipe_that_nobody_writes_to_holds_nothing_up(allowed: Path) -> None:
    os.mkfifo(allowed / "pipe.png")
    assert "is not a regular file" in refused(allowed / "pipe.png", allowed).message


def test_a_device_is_not_opened() -> None:
    assert "is not a regular file" in refused("/dev/zero", Path("/dev")).message


def test_a_relative_path_means_nothing_to_a_worker(allowed: Path) -> None:
    assert "is not an absolute path" in refused("a.png", allowed).message


def test_a_file_that_is_too_large_is_refused(allowed: Path) -> None:
    assert "has more than the 20 bytes that are taken" in refused(allowed / "a.png", allowed, max_bytes=20).message


def test_no_descriptor_stays_open(allowed: Path) -> None:
    before = len(os.listdir("/dev/fd"))
    for name in ("below/below/b.png", "missing.png", "below"):
        try:
            read_file(str(allowed / name), MediaPolicy((allowed,)))
        except MediaError:
            continue
    assert len(os.listdir("/dev/fd")) == before
