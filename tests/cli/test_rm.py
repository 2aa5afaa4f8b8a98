"""`lmwire rm` on a made-up cache."""

import fcntl
from collections.abc import Callable
from pathlib import Path

import pytest

import lmwire
from lmwire.cli import arguments
from lmwire.cli.errors import run_and_report
from lmwire_protocol import RequestError
from lmwire_worker.models.hub.removal import find_cached, remove
from lmwire_worker.process.run_files import RunFile, read_loaded_models
from random_model import write_model
from support.process.lmwire_command import Terminal

pytestmark = pytest.mark.slow
COMMIT = "d" * 40


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    return tmp_path / "hub"


@pytest.fixture
def rm(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    def run(*words: str) -> tuple[int, str, str]:
        parsed = arguments.parse(["rm", *words])
        code = run_and_report(parsed.run, parsed)
        written = capsys.readouterr()
        return code, written.out, written.err

    return run


def add(cache: Path, hub_id: str) -> Path:
    """Put a model of 1 kB into the cache, as a download would, and return its folder."""
    folder = cache / f"models--{hub_id.replace('/', '--')}"
    snapshot = folder / "snapshots" / COMMIT
    snapshot.mkdir(parents=True)
    (folder / "blobs").mkdir()
    (folder / "blobs" / "abc").write_bytes(bytes(1000))
    (snapshot / "model.safetensors").symlink_to("../../blobs/abc")
    locks = cache / ".locks" / folder.name
    locks.mkdir(parents=True)
    (locks / "abc.lock").touch()
    return folder


def test_a_model_is_removed_with_all_it_has(cache: Path, rm: Callable[..., tuple[int, str, str]]) -> None:
    folder, other = add(cache, "owner/Name"), add(cache, "owner/other")
    assert rm("OWNER/name", "--yes") == (0, "owner/Name is removed: 0.0 MB freed\n", "")
    assert not folder.exists() and not (cache / ".locks" / folder.name).exists()
    assert other.exists() and (cache / ".locks" / other.name).exists()


def test_an_alias_names_its_model(cache: Path) -> None:
    folder = add(cache, "mlx-community/Qwen3-0.6B-4bit")
    assert find_cached("qwen3-0.6b").folder == folder


def test_what_a_link_leads_to_stays(cache: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "mine").write_text("mine")
    (add(cache, "owner/name") / "snapshots" / "linked").symlink_to(outside)
    remove(find_cached("owner/name"))
    assert (outside / "mine").read_text() == "mine"


def test_a_cached_model_that_is_a_link_is_refused(cache: Path, tmp_path: Path) -> None:
    add(cache, "owner/name").rename(tmp_path / "elsewhere")
    (cache / "models--owner--name").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(RequestError, match="is a link to"):
        find_cached("owner/name")


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("./mine", "'./mine' is not a model of the hub"),
        ("/tmp", "'/tmp' is not a model of the hub"),
        ("builtin:tiny", "'builtin:tiny' is not a model of the hub"),
        ("owner/../../mine", "is not a model of the hub"),
        ("owner/none", "owner/none is not in the cache; `lmwire models --all` lists what is"),
    ],
)
def test_what_is_not_in_the_cache_is_refused(cache: Path, name: str, problem: str) -> None:
    with pytest.raises(RequestError) as refused:
        find_cached(name)
    assert problem in refused.value.message


def test_a_refusal_is_an_error_of_the_command(cache: Path, rm: Callable[..., tuple[int, str, str]]) -> None:
    code, out, error = rm("owner/none", "--yes")
    assert (code, out) == (1, "")
    assert "owner/none is not in the cache" in error


def test_without_a_terminal_it_removes_only_what_yes_confirms(
    cache: Path, rm: Callable[..., tuple[int, str, str]]
) -> None:
    folder = add(cache, "owner/name")
    code, _, error = rm("owner/name")
    assert (code, folder.exists()) == (64, True)
    assert "add --yes" in error
    assert rm("owner/name", "--yes")[0] == 0


@pytest.mark.parametrize(("answer", "stays"), [("\r", True), ("y\r", False)])
def test_on_a_terminal_it_asks(tmp_path: Path, answer: str, stays: bool) -> None:
    folder = add(tmp_path / "hub", "owner/name")
    with Terminal("rm", "owner/name", HF_HUB_CACHE=str(tmp_path / "hub")) as terminal:
        terminal.read_until("Remove owner/name (0.0 MB)? [y/N]")
        terminal.type(answer)
        assert terminal.wait() == 0
    assert folder.exists() == stays


def test_a_model_that_a_worker_has_loaded_stays_until_the_worker_ends(
    cache: Path, tmp_path: Path, rm: Callable[..., tuple[int, str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    folder = cache / "models--owner--name"
    write_model(folder / "snapshots" / COMMIT)
    with lmwire.Worker() as worker:
        worker.load("owner/name")
        (loaded,) = read_loaded_models()
        assert (loaded.model, Path(loaded.folder).name) == ("owner/name", COMMIT)
        code, _, error = rm("owner/name", "--yes")
        assert (code, folder.exists()) == (1, True)
        assert f"is loaded by the worker with process id {loaded.pid}; stop that first" in error
    assert list(read_loaded_models()) == []
    assert rm("owner/name", "--yes")[0] == 0


def test_a_worker_removes_what_killed_workers_have_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    left = tmp_path / "lmwire" / "run" / "1.json"
    left.parent.mkdir(parents=True)
    left.write_text('{"pid": 1, "model": "gone", "folder": "/gone"}')
    own = RunFile()
    own.record("mine", "/mine")
    assert not left.exists()
    assert [loaded.model for loaded in read_loaded_models()] == ["mine"]
    own.remove()


def test_a_run_folder_that_others_can_change_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    own = RunFile()
    own.record("mine", "/mine")
    own.remove()
    folder = tmp_path / "lmwire" / "run"
    planted = folder / "1.json"
    planted.write_text('{"pid": 1, "model": "planted", "folder": "/"}')
    folder.chmod(0o777)
    with planted.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert list(read_loaded_models()) == []
        own.record("mine", "/mine")
    assert [file.name for file in folder.iterdir()] == ["1.json"]
