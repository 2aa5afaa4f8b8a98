"""Code that comes with a model runs only where a load asks for it, whichever library would run it."""

import json
import os
import pickle
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

import numpy as np
import pytest
from transformers import AutoTokenizer

from lmwire_protocol import RequestError
from lmwire_worker.models.remote_code import RefusedCodeError, guard_remote_code
from lmwire_worker.multimodal.detect import SUPPORTED_TYPES
from random_model import write_model
from random_vision import write_vision_model
from support.http.http_server import served_process
from support.models import hostile_models
from support.models.hostile_models import Trap, bring_code, write_hostile_got, write_hostile_model
from support.models.random_speech import write_whisper
from support.process.lmwire_command import lmwire
from support.process.worker_process import SECONDS, WorkerProcess

HOSTILE_TYPES = str(Path(hostile_models.__file__).with_name("hostile_types.py"))
"""A program, which imports so much that no test should."""
TRUSTING = {
    "mlx_vlm.got", "mlx_vlm.inkling", "mlx_audio.glmasr", "mlx_audio.higgs_audio_3", "mlx_audio.mega_asr",
    "mlx_audio.moss_music", "mlx_audio.moss_transcribe_diarize", "mlx_audio.qwen3_asr",
    "mlx_audio.qwen3_forced_aligner", "mlx_audio.vibevoice_asr",
}  # fmt: skip
"""Types for which the libraries run a folder's code in spite of `trust_remote_code` false."""


@pytest.fixture
def marker(tmp_path: Path) -> Path:
    """The file that a folder's code creates."""
    return tmp_path / "mark"


@pytest.fixture(scope="module")
def worker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WorkerProcess]:
    home = tmp_path_factory.mktemp("home")
    with WorkerProcess(env=os.environ | {"HF_HOME": str(home)}) as worker:
        yield worker


def refused(worker: WorkerProcess, folder: Path, **fields: Any) -> dict[str, Any]:
    """Return the error of a load, after which the worker still loads another model."""
    load = {"id": f"load {folder}", "cmd": "load", "path": str(folder), **fields}
    error = worker.call(load)
    assert error["event"] == "error", error
    worker.load("builtin:tiny", id=f"after {folder}")
    return error


@pytest.mark.slow
def test_a_model_whose_processor_takes_trust_for_granted_is_refused_and_runs_nothing(
    worker: WorkerProcess, tmp_path: Path, marker: Path
) -> None:
    error = refused(worker, write_hostile_got(tmp_path / "got", marker))
    assert not marker.exists()
    assert error["code"] == "unsupported"
    assert "`got`" in error["error"] and all(name in error["error"] for name in SUPPORTED_TYPES)


@pytest.mark.slow
def test_a_request_over_http_runs_nothing_of_a_hostile_folder_either(tmp_path: Path, marker: Path) -> None:
    folder = write_hostile_got(tmp_path / "got", marker)
    with served_process() as server:
        body = json.dumps({"model": str(folder), "messages": [{"role": "user", "content": "Hi"}]}).encode()
        headers = {"Content-Type": "application/json"}
        with pytest.raises(HTTPError) as error:
            urlopen(Request(f"{server.url}/v1/chat/completions", body, headers), timeout=SECONDS)
        assert error.value.code == 404
    assert not marker.exists()


@pytest.mark.slow
def test_the_listing_of_models_runs_nothing_of_a_hostile_folder(tmp_path: Path, marker: Path) -> None:
    repository = tmp_path / "hub" / "models--owner--Hostile"
    write_hostile_got(repository / "snapshots" / ("a" * 40), marker)
    models = json.loads(lmwire("models", "--json", "--all", HF_HUB_CACHE=str(tmp_path / "hub")).stdout)
    assert "`got`" in {model["id"]: model["problem"] for model in models}["owner/Hostile"]
    assert not marker.exists()


@pytest.mark.slow
@pytest.mark.parametrize("model_type", ["inkling", "moondream2", "molmo", "minicpmo", "phi3_v", "qwen2_vl", "kimi_vl"])
def test_unsupported_vision_types_are_refused_before_a_library_opens_the_folder(
    worker: WorkerProcess, tmp_path: Path, marker: Path, model_type: str
) -> None:
    refused(worker, write_hostile_model(tmp_path / model_type, marker, model_type))
    assert not marker.exists()


@pytest.mark.slow
@pytest.mark.parametrize("write", [write_model, write_vision_model, write_whisper])
def test_a_model_that_needs_no_code_loads_beside_code_or_is_refused_and_runs_nothing(
    worker: WorkerProcess, tmp_path: Path, marker: Path, write: Any
) -> None:
    folder = write(tmp_path / "model")
    bring_code(folder, marker)
    end = worker.call({"id": str(folder), "cmd": "load", "path": str(folder)})
    assert end["event"] == "done" or end["code"] == "unsupported", end
    assert not marker.exists()


@pytest.mark.nightly
def test_no_type_of_the_libraries_runs_code_of_a_folder(tmp_path: Path) -> None:
    ran = opened_as_each_type(tmp_path)
    assert len(ran) > 200 and ran.keys() >= TRUSTING
    assert [name for name, did in ran.items() if did] == []


@pytest.mark.nightly
def test_without_the_guard_some_types_run_code_of_a_folder(tmp_path: Path) -> None:
    ran = opened_as_each_type(tmp_path, *(name.partition(".")[2] for name in sorted(TRUSTING)))
    assert {name for name, did in ran.items() if did} == TRUSTING


def opened_as_each_type(root: Path, *unguarded: str) -> dict[str, bool]:
    """Return for each type whether a folder's code ran."""
    environment = os.environ | {"HF_HOME": str(root / "home"), "HF_HUB_OFFLINE": "1"}
    environment["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    command = [sys.executable, HOSTILE_TYPES, str(root), *unguarded]
    output = subprocess.run(
        command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, check=True, timeout=5 * SECONDS
    )
    return json.loads(output.stdout)


@pytest.mark.slow
def test_code_of_a_folder_runs_where_a_load_asks_for_it_and_not_in_the_next_load(
    worker: WorkerProcess, tmp_path: Path, marker: Path
) -> None:
    folder = write_model(tmp_path / "model")
    bring_tokenizer(folder, marker)
    worker.load(folder, id="trusted", trust_remote_code=True)
    assert marker.read_text() == "imported, made"
    marker.unlink()
    worker.load(folder, id="not trusted")
    assert not marker.exists()


def bring_tokenizer(folder: Path, marker: Path) -> None:
    """Give a model a tokenizer of its own, which writes down that it is imported and made."""
    source = f"""
from transformers import PreTrainedTokenizerFast
open({str(marker)!r}, "w").write("imported")

class Brought(PreTrainedTokenizerFast):
    def __init__(self, *arguments, **fields):
        super().__init__(*arguments, **fields)
        open({str(marker)!r}, "a").write(", made")
"""
    (folder / "brought.py").write_text(source)
    path = folder / "tokenizer_config.json"
    settings = json.loads(path.read_text()) | {"tokenizer_class": "Brought"}
    path.write_text(json.dumps(settings | {"auto_map": {"AutoTokenizer": [None, "brought.Brought"]}}))


def test_what_a_trusted_load_imported_is_not_there_for_the_next_one(tmp_path: Path, marker: Path) -> None:
    folder = write_model(tmp_path / "model")
    bring_tokenizer(folder, marker)
    with guard_remote_code(folder, trusted=True):
        assert type(AutoTokenizer.from_pretrained(folder, trust_remote_code=True)).__name__ == "Brought"
    [imported] = {name for name in sys.modules if name.endswith(".brought")}
    with pytest.raises(RequestError, match="brings its own code"), guard_remote_code(folder, trusted=False):
        assert imported not in sys.modules
        AutoTokenizer.from_pretrained(folder, trust_remote_code=True)  # as some of mlx-vlm's processors do
    assert imported in sys.modules, "the trusted model goes on where the other one failed"


def test_a_pickle_is_code(tmp_path: Path, marker: Path) -> None:
    holder = np.empty(1, object)
    holder[0] = Trap(marker)
    np.save(tmp_path / "array.npy", holder, allow_pickle=True)
    data = pickle.dumps(Trap(marker))
    with guard_remote_code(tmp_path, trusted=False):
        with pytest.raises(RefusedCodeError, match="in a pickle"):
            pickle.loads(data)
        with pytest.raises(RefusedCodeError, match="in a pickle"):
            np.load(tmp_path / "array.npy", allow_pickle=True)
    assert not marker.exists()
    pickle.loads(data)  # outside of a load the process is its own
    assert marker.exists()


def test_a_compiled_file_of_a_folder_is_code(tmp_path: Path, marker: Path) -> None:
    import py_compile
    from importlib.util import module_from_spec, spec_from_file_location

    source = tmp_path / "brought.py"
    source.write_text(f"open({str(marker)!r}, 'w')")
    compiled = py_compile.compile(str(source), str(tmp_path / "other.pyc"), dfile="<string>", doraise=True)
    spec = spec_from_file_location("brought", compiled)
    assert spec and spec.loader
    with guard_remote_code(tmp_path, trusted=False), pytest.raises(RefusedCodeError):
        spec.loader.exec_module(module_from_spec(spec))
    assert not marker.exists()


def test_in_a_worker_code_stays_refused_after_the_load(tmp_path: Path) -> None:
    (tmp_path / "brought.py").touch()
    with guard_remote_code(tmp_path, trusted=False, lasting=True):
        pass
    with pytest.raises(RefusedCodeError):
        (tmp_path / "brought.py").read_text()
    with guard_remote_code(tmp_path, trusted=True, lasting=True):
        pass
    assert (tmp_path / "brought.py").read_text() == ""


def test_a_load_without_trust_fetches_nothing_once_the_folder_is_there(tmp_path: Path) -> None:
    with guard_remote_code(tmp_path, trusted=False), pytest.raises(URLError, match="is not in the folder"):
        urlopen("http://127.0.0.1:9")
