"""Options that let a worker read media."""

import subprocess
import sys
from pathlib import Path

import pytest

from lmwire_worker.__main__ import read_options, read_settings
from lmwire_worker.media import MediaPolicy
from lmwire_worker.media.turns import Turns
from lmwire_worker.multimodal import audio_input
from lmwire_worker.process.stderr_log import Log
from support.process.worker_process import SECONDS
from support.protocol import prose


def policy(*arguments: str) -> MediaPolicy:
    return read_settings(read_options([*arguments]), Log())[2]


def test_by_default_nothing_is_read_but_what_comes_in_a_request() -> None:
    assert policy() == MediaPolicy(directories=(), urls=False)


def test_directories_and_addresses_are_allowed_one_by_one(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    arguments = ["--media-dir", str(tmp_path), "--media-urls", "--media-dir", str(other)]
    assert policy(*arguments) == MediaPolicy(directories=(tmp_path, other), urls=True)


def test_the_last_form_of_a_flag_wins() -> None:
    assert not policy("--media-urls", "--no-media-urls").urls
    assert policy("--no-media-urls", "--media-urls").urls


def test_a_directory_may_be_relative_to_where_the_worker_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "images").mkdir()
    monkeypatch.chdir(tmp_path)
    assert policy("--media-dir", "images").directories == (tmp_path / "images",)


def test_the_limits_are_those_of_the_protocol() -> None:
    policy = MediaPolicy()
    (table,) = prose.tables()["Images and sounds"]
    documented = {what: row["limit"].partition(";")[0].partition(":")[0] for what, row in table.by("what").items()}
    assert documented == {
        "an image or a sound, as a file": f"{policy.max_bytes // 2**20} MiB",
        "the files of a request from disk and network together": f"{policy.max_request_bytes // 2**20} MiB",
        "an image": f"{policy.max_pixels:,} pixels",
        "an image's longer side": f"{policy.max_aspect} times the other",
        "the images of a request together": f"{policy.max_request_pixels:,} pixels",
        "a sound": f"{policy.max_samples:,} samples",
        "the sounds of a request together": f"{policy.max_request_samples:,} samples",
        "the decoded media of a request": f"{Turns(policy.memory_bytes, bool).largest:,} bytes",
        "a sound in a message": f"{audio_input.MIN_SOUND_S:g} s to {audio_input.MAX_SOUND_S // 60} minutes",
        "a download, redirects included": f"{policy.fetch_seconds:g} s",
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--media-dir"], "--media-dir needs a directory"),
        (["--media-dir", "/no/such/folder"], "--media-dir /no/such/folder is not a directory"),
        (["--media-dir", "/", "--media-url"], "unrecognized arguments: --media-url; did you mean --media-urls?"),
        (["--media-urls", "yes"], "unrecognized arguments: yes"),
    ],
)
def test_options_that_cannot_be_meant_are_refused(arguments: list[str], problem: str) -> None:
    command = [sys.executable, "-P", "-m", "lmwire_worker", *arguments]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert ended.returncode == 64
    assert problem in ended.stderr.splitlines()[0]
