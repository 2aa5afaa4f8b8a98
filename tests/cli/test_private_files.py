"""Files with keys and conversations: nobody else can read one, whatever lies in its place."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from lmwire.cli.private_files import touch_private, write_private


@pytest.fixture(autouse=True)
def no_mask() -> Iterator[None]:
    """Let new files have all the rights that their makers ask for."""
    before = os.umask(0)
    yield
    os.umask(before)


def test_a_file_has_its_rights_before_its_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    modes: list[int] = []
    replace = Path.replace

    def look_and_replace(written: Path, target: Path) -> Path:
        modes.append(written.stat().st_mode & 0o777)
        return replace(written, target)

    monkeypatch.setattr(Path, "replace", look_and_replace)
    write_private(tmp_path / "key", b"secret")
    assert ((tmp_path / "key").read_bytes(), modes) == (b"secret", [0o600])


def test_a_file_that_cannot_be_written_leaves_what_was_there(tmp_path: Path) -> None:
    (tmp_path / "key").mkdir()
    with pytest.raises(OSError):
        write_private(tmp_path / "key", b"secret")
    assert [file.name for file in tmp_path.iterdir()] == ["key"]


def test_a_link_is_replaced_and_not_followed(tmp_path: Path) -> None:
    (tmp_path / "another").touch()
    (tmp_path / "key").symlink_to(tmp_path / "another")
    write_private(tmp_path / "key", b"secret")
    assert ((tmp_path / "another").read_bytes(), (tmp_path / "key").is_symlink()) == (b"", False)


def test_a_history_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert touch_private(tmp_path / "history").stat().st_mode & 0o777 == 0o600
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    with pytest.raises(PermissionError, match="another user's"):
        touch_private(tmp_path / "history")
