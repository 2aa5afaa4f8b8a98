"""Loading: errors are found before the current model is released, and nothing of it remains afterwards."""

import gc
import importlib.util
import json
import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mlx.core as mx
import pytest

from lmwire_protocol import Load, RequestError
from lmwire_protocol.events import Quantization
from lmwire_worker.engine.interface import LoadCancelled
from lmwire_worker.loading.model_loader import GRAPH_OPERATIONS, MlxModelLoader
from lmwire_worker.models.folder_check import check_files
from random_model import write_model
from support.process.worker_process import SECONDS
from support.runners.generation_runners import ask, chat, open_runner

pytestmark = pytest.mark.slow


class Loading:
    """One load, its progress, and its outcome."""

    def __init__(self, path: str | Path, *, cancel: str | None = None, trust_remote_code: bool = False) -> None:
        self.replaced = False
        self.progress: list[tuple[str, int, int | None, str]] = []
        self.failure: Exception | None = None
        self._cancel = cancel
        engine = MlxModelLoader()
        engine.prepare()
        try:
            engine.open(Load(path=str(path), trust_remote_code=trust_remote_code), self._report, self._replace).close()
        except (RequestError, LoadCancelled) as error:
            self.failure = error

    @property
    def error(self) -> RequestError:
        assert isinstance(self.failure, RequestError)
        return self.failure

    def _report(self, stage: str, current: int, total: int | None, unit: str) -> None:
        self.progress.append((stage, current, total, unit))
        if stage == self._cancel and current > 0:
            raise LoadCancelled

    def _replace(self) -> None:
        self.replaced = True


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_model(tmp_path / "model")


def edit_config(folder: Path, **fields: Any) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | fields))


def remove(name: str) -> Callable[[Path], Any]:
    return lambda folder: (folder / name).unlink()


def write(name: str, content: bytes) -> Callable[[Path], Any]:
    return lambda folder: (folder / name).write_bytes(content)


def break_link(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    (folder / "model.safetensors").symlink_to("gone")


def cut(folder: Path) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-100])


def claim_another_size(folder: Path) -> None:
    edit_config(folder, hidden_size=128)


def name_missing_shards(folder: Path) -> None:
    index = {"weight_map": {"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))


def lose_tokenizer(folder: Path) -> None:
    (folder / "tokenizer.json").unlink()
    (folder / "tokenizer_config.json").unlink()


FAULTS: list[tuple[Callable[[Path], Any], str, str]] = [
    (remove("config.json"), "bad_model", "config.json"),
    (write("config.json", b"{"), "bad_model", "not JSON"),
    (write("config.json", b"[]"), "bad_model", "JSON object"),
    (write("config.json", b"{}"), "bad_model", "model_type"),
    (lambda folder: edit_config(folder, model_type="nonesuch"), "unsupported", "nonesuch"),
    (lambda folder: edit_config(folder, model_type="cache"), "unsupported", "cache"),
    (lambda folder: edit_config(folder, model_file="evil.py"), "unsupported", "trust_remote_code"),
    (remove("model.safetensors"), "bad_model", "model*.safetensors"),
    (name_missing_shards, "bad_model", "model-00001-of-00002.safetensors"),
    (write("model.safetensors.index.json", b"{}"), "bad_model", "weight_map"),
    (cut, "bad_model", "model.safetensors"),
    (write("model.safetensors", b""), "bad_model", "truncated"),
    (write("model.safetensors", b"\xff" * 64), "bad_model", "truncated"),
    (write("model.safetensors", (2).to_bytes(8, "little") + b"[["), "bad_model", "header"),
    (write("model.safetensors", (8).to_bytes(8, "little") + b'{"a": 1}'), "bad_model", "header"),
    (break_link, "bad_model", "model.safetensors"),
    (lose_tokenizer, "bad_model", "tokenizer"),
    (write("tokenizer.json", b"{"), "bad_model", "tokenizer"),
]


@pytest.mark.parametrize(("break_it", "code", "named"), FAULTS)
def test_a_faulty_folder_is_refused_by_name_and_costs_nobody_the_present_model(
    break_it: Callable[[Path], Any], code: str, named: str, folder: Path
) -> None:
    break_it(folder)
    loading = Loading(folder)
    assert loading.error.code == code and not loading.error.retryable
    assert named in loading.error.message
    assert not loading.replaced


def test_weights_that_do_not_fit_the_config_are_refused_shortly(folder: Path) -> None:
    claim_another_size(folder)
    error = Loading(folder).error
    assert error.code == "bad_model"
    assert str(folder) in error.message and len(error.message) < 600


@pytest.mark.parametrize(
    ("path", "named"),
    [
        ("/nonesuch/model", "/nonesuch/model"),
        ("./nonesuch", "nonesuch"),
        ("~/nonesuch-model", "nonesuch-model"),
        ("builtin:nonesuch", "give builtin:tiny"),
        ("qwen3-0.7b", "qwen3-0.6b"),
        ("xyzzy", "aliases"),
        ("a/b/c", "a/b/c"),
        ("n" * 5000, "nnn"),
        ("~nobody-of-that-name/model", "nobody"),
        ("nul\0", "nul"),
    ],
)
def test_a_path_that_leads_nowhere_is_not_found(path: str, named: str) -> None:
    loading = Loading(path)
    assert (loading.error.code, loading.error.retryable) == ("model_not_found", False)
    assert named in loading.error.message
    assert not loading.replaced


def test_a_file_is_no_folder(folder: Path) -> None:
    assert "is a file" in Loading(folder / "config.json").error.message


def weights_bytes(folder: Path) -> int:
    weights = mx.load(str(folder / "model.safetensors"))
    assert isinstance(weights, dict)
    return sum(weight.nbytes for weight in weights.values())


def test_every_stage_reports_progress(folder: Path) -> None:
    progress = Loading(folder).progress
    assert list(dict.fromkeys(stage for stage, *_ in progress)) == ["resolve", "read", "warm_up"]
    size = weights_bytes(folder)
    assert [report for report in progress if report[0] == "read"][-1] == ("read", size, size, "bytes")
    warm_up = [report for report in progress if report[0] == "warm_up"]
    assert warm_up[-1][1] == warm_up[-1][2] and warm_up[-1][3] == "steps"


@pytest.mark.parametrize("stage", ["read", "warm_up"])
def test_a_cancelled_load_leaves_nothing_in_memory(stage: str, folder: Path) -> None:
    gc.collect()
    mx.clear_cache()
    before = mx.get_active_memory()
    loading = Loading(folder, cancel=stage)
    assert isinstance(loading.failure, LoadCancelled) and loading.replaced
    assert mx.get_active_memory() - before < 1000
    assert mx.get_cache_memory() == 0


def test_a_failed_load_leaves_nothing_in_memory(folder: Path) -> None:
    claim_another_size(folder)
    gc.collect()
    mx.clear_cache()
    before = mx.get_active_memory()
    assert Loading(folder).error
    assert mx.get_active_memory() - before < 1000


def test_closing_a_runner_releases_its_memory(folder: Path) -> None:
    gc.collect()
    mx.clear_cache()
    before = mx.get_active_memory()
    runner = open_runner(folder)
    ask(runner, chat("hello", max_tokens=50))
    assert runner.memory().active_bytes >= before + runner.model.weights_bytes
    assert runner.close() >= runner.model.weights_bytes
    assert mx.get_active_memory() - before < 1000
    assert mx.get_cache_memory() == 0


def test_a_model_is_described(tmp_path: Path) -> None:
    folder = write_model(tmp_path / "model", "llama", quantize=(4, 32), dtype="bfloat16", max_position_embeddings=777)
    model = open_runner(folder).model
    assert (model.path, model.model_type, model.vocab_size) == (str(folder), "llama", 512)
    assert (model.layers, model.hidden_size, model.context_len) == (2, 64, 777)
    assert model.quantization == Quantization(4, 32)
    assert model.weights_bytes == weights_bytes(folder)
    assert model.capabilities == ["generate", "chat", "tokenize"]


def test_a_nested_config_is_read_too(folder: Path) -> None:
    from lmwire_worker.models.model_info import describe_model
    from lmwire_worker.models.tokenizer_loading import load_tokenizer
    from support.runners.generation_runners import stock

    network, _ = stock(folder)
    tokenizer = load_tokenizer(folder, {}, trust_remote_code=False)
    nested = {"model_type": "qwen3", "text_config": {"hidden_size": 64, "max_position_embeddings": 99, "vocab_size": 5}}
    model = describe_model(folder, nested, network, tokenizer)
    assert (model.hidden_size, model.context_len, model.vocab_size) == (64, 99, 5)


def test_a_whole_model_passes_the_checks(folder: Path) -> None:
    assert check_files(folder)["model_type"] == "qwen3"


def test_a_folder_may_be_a_link_or_relative(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder.parent)
    Path("link").symlink_to(folder)
    assert Loading("./link").failure is None
    assert Loading("./model").failure is None
    assert Loading("link/").failure is None


def test_a_load_after_a_failed_one_works(folder: Path, tmp_path: Path) -> None:
    broken = Path(shutil.copytree(folder, tmp_path / "broken"))
    cut(broken)
    assert Loading(broken).failure is not None
    assert Loading(folder).failure is None


@pytest.mark.skipif(sys.platform != "linux", reason="the variable has another meaning on Metal")
@pytest.mark.parametrize(("given", "used"), [(None, "20"), ("50", "50")])
def test_cuda_graphs_are_short_unless_the_environment_says_otherwise(
    given: str | None, used: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(GRAPH_OPERATIONS, given or "")
    if given is None:
        monkeypatch.delenv(GRAPH_OPERATIONS)
    MlxModelLoader().prepare()
    assert os.environ[GRAPH_OPERATIONS] == used


def test_the_limit_of_open_files_is_not_lowered() -> None:
    code = (
        "import resource; from lmwire_worker.loading.model_loader import MlxModelLoader; MlxModelLoader().prepare();"
        "print(*resource.getrlimit(resource.RLIMIT_NOFILE))"
    )
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, timeout=SECONDS).stdout
    assert [int(word) for word in output.split()] == [max(soft, min(2048, hard)), hard]


def test_the_engine_is_known_without_importing_the_library() -> None:
    code = (
        "import sys; from lmwire_worker.loading.model_loader import MlxModelLoader; print(MlxModelLoader().names,"
        "[name for name in ('mlx', 'mlx_lm', 'mlx_vlm', 'PIL', 'numpy', 'huggingface_hub') if name in sys.modules])"
    )
    output = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, check=True, timeout=SECONDS, text=True
    ).stdout
    installed = [name for name in ("mlx_lm", "mlx_vlm", "mlx_audio") if importlib.util.find_spec(name)]
    assert output == f"{installed} []\n"


def test_without_the_library_a_load_says_what_to_install(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    loading = Loading(folder)
    assert loading.error.code == "unsupported"
    assert "pip install 'lmwire[" in loading.error.message


def test_a_load_leaves_nothing_of_the_weights_that_it_drew_first(folder: Path, tmp_path: Path) -> None:
    Loading(folder)
    state: Any = mx.random.state
    mx.export_to_dot(str(tmp_path / "graph"), *state)
    assert "RandomBits" not in (tmp_path / "graph").read_text(), "the state of each draw is kept for those after it"
