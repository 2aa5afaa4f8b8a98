"""Folders with special or misleading files: a load refuses them at once, and a listing goes on."""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from lmwire import LmwireError, local_models, worker_programs
from lmwire.worker_programs import listing_command
from lmwire_http.pool.pool import Pool
from lmwire_http.settings import Settings
from lmwire_worker.models.model_files import MAX_CONFIG_BYTES, MAX_TEXT_BYTES
from random_model import write_model
from random_vision import write_vision_model
from support.http.http_server import wait_until
from support.models.random_embeddings import write_embedding_model
from support.models.random_speech import write_whisper
from support.process.lmwire_command import lmwire
from support.process.worker_process import SECONDS, WorkerProcess

pytestmark = pytest.mark.slow

Change = Callable[[Path], Any]


@pytest.fixture(scope="module")
def worker() -> Iterator[WorkerProcess]:
    with WorkerProcess() as worker:
        yield worker


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_model(tmp_path / "model")


def load(worker: WorkerProcess, folder: Path, id: str = "load") -> dict[str, Any]:
    """Load a folder, and return how that ends; the worker is the same one in all tests."""
    return worker.call({"id": f"{id} {folder}", "cmd": "load", "path": str(folder)})


def pipe(path: Path) -> None:
    os.mkfifo(path)


def device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def directory(path: Path) -> None:
    path.mkdir()


def bound(path: Path) -> None:
    """Put a socket there; its path is too long to be named from afar."""
    here = os.open(".", os.O_DIRECTORY)
    os.chdir(path.parent)
    try:
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(path.name)
    finally:
        os.fchdir(here)
        os.close(here)


def nowhere(path: Path) -> None:
    path.symlink_to("nowhere")


def loop(path: Path) -> None:
    path.symlink_to(path.name)


NO_FILES: dict[str, tuple[Change, str]] = {
    "a named pipe": (pipe, "is a named pipe"),
    "a device": (device, "is a device"),
    "a directory": (directory, "is a directory"),
    "a socket": (bound, "is a socket"),
    "a link to nowhere": (nowhere, "is a link that leads nowhere"),
    "a link to itself": (loop, "cannot be read"),
}


@pytest.mark.parametrize("kind", NO_FILES)
def test_a_config_that_is_no_file_is_refused_at_once(worker: WorkerProcess, folder: Path, kind: str) -> None:
    make, problem = NO_FILES[kind]
    (folder / "config.json").unlink()
    make(folder / "config.json")
    error = load(worker, folder)
    assert error["code"] == "bad_model"
    assert f"{folder}/config.json {problem}" in error["error"]


@pytest.mark.parametrize(
    "name",
    [
        "model.safetensors", "model.safetensors.index.json", "model-2.safetensors", "tokenizer.json", "tokenizer.model",
        "tokenizer_config.json", "generation_config.json", "special_tokens_map.json", "added_tokens.json",
        "chat_template.jinja", "hf_quant_config.json", "vocab.json", "preprocessor_config.json", "modules.json",
        "1_Pooling/config.json", "chat_templates/other.jinja",
    ],
)  # fmt: skip
@pytest.mark.parametrize("kind", ["a named pipe", "a device"])
def test_no_other_file_that_a_library_might_open_is_waited_for(
    worker: WorkerProcess, folder: Path, name: str, kind: str
) -> None:
    make, problem = NO_FILES[kind]
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.unlink(missing_ok=True)
    make(path)
    error = load(worker, folder)
    assert error["code"] == "bad_model"
    assert f"{path} {problem}" in error["error"]


@pytest.mark.parametrize("write", [write_vision_model, write_whisper, write_embedding_model])
def test_a_config_that_is_not_a_file_is_refused_for_models_of_every_kind(
    worker: WorkerProcess, tmp_path: Path, write: Any
) -> None:
    folder = write(tmp_path / "model")
    pipe(folder / "preprocessor_config.json.json")
    assert "is a named pipe" in load(worker, folder)["error"]


def test_an_adapter_is_looked_at_in_the_same_way(worker: WorkerProcess, folder: Path, tmp_path: Path) -> None:
    adapter = tmp_path / "adapter"
    adapter.mkdir()
    pipe(adapter / "adapter_config.json")
    end = worker.call({"id": "adapted", "cmd": "load", "path": str(folder), "adapter_path": str(adapter)})
    assert (end["code"], end["field"]) == ("bad_model", "adapter_path")
    assert "is a named pipe" in end["error"]


def test_a_snapshot_of_links_to_files_loads(worker: WorkerProcess, folder: Path, tmp_path: Path) -> None:
    snapshot = tmp_path / "snapshot"
    snapshot.mkdir()
    for file in folder.iterdir():
        (snapshot / file.name).symlink_to(file)
    assert load(worker, snapshot)["event"] == "done"


@pytest.mark.parametrize(("name", "most"), [("config.json", MAX_CONFIG_BYTES), ("tokenizer.json", MAX_TEXT_BYTES)])
def test_a_file_that_is_far_too_large_is_not_read(worker: WorkerProcess, folder: Path, name: str, most: int) -> None:
    os.truncate(folder / name, 2**40)
    before = worker.resident_bytes
    error = load(worker, folder)
    assert error["code"] == "bad_model"
    assert f"{folder}/{name} is larger than {most:,} bytes" in error["error"]
    assert worker.resident_bytes - before < 200_000_000


def set_fields(**fields: Any) -> Change:
    """Change fields of the config.json."""

    def change(folder: Path) -> None:
        path = folder / "config.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | fields))

    return change


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = {"deeper": [value]}
    return value


CLAIMS: dict[str, tuple[Change, str]] = {
    "layers": (
        set_fields(num_hidden_layers=10**5),
        "claims 100000 layers (num_hidden_layers); the model has 24 tensors",
    ),
    "a number of layers that no memory holds": (set_fields(num_hidden_layers=10**12), "claims 1000000000000 layers"),
    "layers that its tensors do not show": (set_fields(num_hidden_layers=500), "claims 500 layers"),
    "layers of a part": (set_fields(text_config={"n_layer": 10**9}), "(text_config.n_layer)"),
    "layers as a text": (set_fields(num_hidden_layers="many"), "num_hidden_layers 'many', which must be a whole"),
    "no number of layers": (set_fields(num_hidden_layers=float("nan")), "num_hidden_layers nan, which must be a whole"),
    "negative layers": (set_fields(num_hidden_layers=-1), "num_hidden_layers -1, which must be a whole number"),
    "half a layer": (set_fields(num_hidden_layers=1.5), "num_hidden_layers 1.5"),
    "a width": (set_fields(hidden_size=10**10), "claims hidden_size 10000000000; the widest tensor"),
    "endless width": (set_fields(hidden_size=float("inf")), "hidden_size inf, which must be"),
    "a vocabulary": (set_fields(vocab_size=10**9), "claims vocab_size 1000000000"),
    "negative heads": (set_fields(num_attention_heads=-4), "num_attention_heads -4"),
    "groups of nothing": (set_fields(quantization={"group_size": 0, "bits": 4}), "quantization.group_size 0"),
    "no heads": (set_fields(num_key_value_heads=0), "num_key_value_heads 0, which must be above 0"),
    "heads": (set_fields(num_attention_heads=10**8), "claims num_attention_heads 100000000"),
    "experts": (set_fields(num_experts=10**7), "claims num_experts 10000000"),
    "digits": (set_fields(vocab_size=10**4000), "claims vocab_size 1000"),
    "depth": (set_fields(rope_scaling=nested(40)), "is nested deeper than 32 levels"),
    "more depth than a stack": (set_fields(rope_scaling=nested(400)), "nested deeper"),
}


@pytest.mark.parametrize("claim", CLAIMS)
def test_a_config_that_its_tensors_do_not_bear_out_is_refused_before_anything_is_built(
    worker: WorkerProcess, folder: Path, claim: str
) -> None:
    change, problem = CLAIMS[claim]
    change(folder)
    error = load(worker, folder)
    assert error["code"] == "bad_model"
    assert f"{folder}/config.json" in error["error"] and problem in error["error"]
    assert len(error["error"]) < 400


@pytest.mark.parametrize("write", [write_vision_model, write_whisper, write_embedding_model])
def test_a_config_that_contradicts_its_tensors_is_refused_for_models_of_every_kind(
    worker: WorkerProcess, tmp_path: Path, write: Any
) -> None:
    folder = write(tmp_path / "model")
    layers = {"encoder_layers": 10**7, "n_text_layer": 10**7, "vision_config": {"depth": 10**7}}
    set_fields(**layers)(folder)
    assert "claims 10000000 layers" in load(worker, folder)["error"]


def test_an_index_leads_out_of_the_folder_to_nothing(worker: WorkerProcess, folder: Path) -> None:
    for name in ("../other.safetensors", "/etc/passwd", "model.gguf"):
        (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"a": name}}))
        error = load(worker, folder, id=name)
        assert error["code"] == "bad_model" and name in error["error"]


def give_high_tokens(folder: Path) -> Path:
    """Let a tokenizer make tokens that are far beyond the model's table."""
    path = folder / "tokenizer.json"
    tokenizer = json.loads(path.read_text())
    tokenizer["model"]["vocab"]["H"] = 10**9
    path.write_text(json.dumps(tokenizer))
    return folder


def test_a_token_that_a_model_lacks_is_not_looked_up_in_other_memory(worker: WorkerProcess, tmp_path: Path) -> None:
    assert load(worker, give_high_tokens(write_whisper(tmp_path / "speech")))["code"] == "bad_model"
    worker.load(give_high_tokens(write_embedding_model(tmp_path / "vectors")), id="vectors")
    error = worker.call({"id": "embed", "cmd": "embed", "input": ["Hm", "Hi"]})
    assert (error["code"], error["field"]) == ("invalid_request", "input[0]")
    assert worker.call({"id": "embed again", "cmd": "embed", "input": ["well"]})["event"] == "done"


def test_a_weight_in_groups_of_nothing_ends_its_load_alone(worker: WorkerProcess, tmp_path: Path) -> None:
    folder = write_model(tmp_path / "quantised", quantize=(4, 32))
    set_fields(intermediate_size=1)(folder)
    assert load(worker, folder)["code"] == "bad_model"


def cached(cache: Path, *names: str) -> list[Path]:
    """Put models into a hub cache, and return their snapshots."""
    snapshots = [cache / f"models--owner--{name}" / "snapshots" / ("a" * 40) for name in names]
    return [write_model(snapshot) for snapshot in snapshots]


def test_odd_folders_hide_no_other_in_a_listing(tmp_path: Path) -> None:
    makers: dict[str, Change] = {
        **{f"config {kind}": in_config(make) for kind, (make, _) in NO_FILES.items()},
        **{f"claims {number}": change for number, (change, _) in enumerate(CLAIMS.values())},
        "odd types": set_fields(quantization=["bits"], text_config="text", max_position_embeddings="long"),
        "odd bits": set_fields(quantization={"bits": "four"}, max_position_embeddings={"a": 1}),
        "odd architectures": set_fields(model_type="bert", architectures=5),
        "an odd type": set_fields(model_type=["qwen3"]),
        "a list": lambda folder: (folder / "config.json").write_text("[]"),
    }
    names = [name.replace(" ", "-") for name in makers]
    for snapshot, change in zip(cached(tmp_path, *names), makers.values(), strict=True):
        change(snapshot)
    cached(tmp_path, "good")
    refs = tmp_path / "models--owner--piped" / "refs"
    refs.mkdir(parents=True)
    pipe(refs / "main")
    shown = lmwire("models", "--json", HF_HUB_CACHE=str(tmp_path), XDG_CACHE_HOME=str(tmp_path))
    can_run = {model["id"] for model in json.loads(shown.stdout)}
    assert (
        {"builtin:tiny", "owner/good"} <= can_run <= {"builtin:tiny", "owner/good", "owner/odd-types", "owner/odd-bits"}
    )
    assert "lmwire: owner/piped is left out: " in shown.stderr


def in_config(make: Change) -> Change:
    """Replace config.json by something other than a regular file."""

    def change(folder: Path) -> None:
        (folder / "config.json").unlink()
        make(folder / "config.json")

    return change


def test_an_odd_folder_is_described_beside_others_to_a_program(folder: Path, tmp_path: Path) -> None:
    odd = tmp_path / "odd"
    odd.mkdir()
    pipe(odd / "config.json")
    none, good = local_models(str(odd), str(folder))
    assert "is a named pipe" in (none.problem or "")
    assert good.problem is None


STUCK = """
import sys, threading
from types import SimpleNamespace
from lmwire_worker.loading.model_kind import check_support
from lmwire_worker.models import local_models as models
now = 0
def stuck(folder):
    global now
    print("stuck", file=sys.stderr, flush=True)
    now = PASSED
    threading.Event().wait()
models.time = SimpleNamespace(monotonic=lambda: now)
fine = models._size_of
models._size_of = lambda folder: stuck(folder) if "--stuck" in str(folder) else fine(folder)
models.main(check_support, {})
"""
"""A listing on a file system that never answers for one folder; PASSED seconds seem to pass while it waits."""


def test_a_listing_that_is_stuck_shows_in_time_what_it_has_found(tmp_path: Path) -> None:
    cached(tmp_path, "first", "stuck")
    shown = subprocess.run(
        [sys.executable, "-c", STUCK.replace("PASSED", "1e6"), "--json"],
        env=os.environ | {"HF_HUB_CACHE": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)},
        capture_output=True,
        timeout=SECONDS,
        check=True,
    )
    assert [model["id"] for model in json.loads(shown.stdout)] == ["builtin:tiny", "owner/first"]
    assert b"is not complete" in shown.stderr


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_listing_ends_with_the_program_that_started_it(tmp_path: Path, number: signal.Signals) -> None:
    cached(tmp_path, "stuck")
    stuck = STUCK.replace("PASSED", "0")
    starter = (
        "import os, subprocess, sys\n"
        f"listing = subprocess.Popen([sys.executable, '-c', {stuck!r}, '--parent', str(os.getpid())],"
        "stderr=subprocess.PIPE)\n"
        "listing.stderr.readline()\n"
        "print(listing.pid, flush=True)\n"
        "listing.wait()\n"
    )
    environment = os.environ | {"HF_HUB_CACHE": str(tmp_path)}
    with subprocess.Popen([sys.executable, "-c", starter], stdout=subprocess.PIPE, env=environment) as parent:
        assert parent.stdout
        listing = int(parent.stdout.readline())
        parent.send_signal(number)
    wait_until(lambda: not is_running(listing), "the listing outlived its parent")


def is_running(pid: int) -> bool:
    """Return whether a process is there and has not ended."""
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False).stdout
    return bool(state.strip()) and not state.startswith("Z")


def test_the_listing_process_exits_with_its_parent() -> None:
    assert listing_command()[-2:] == ["--parent", str(os.getpid())]
    gone = subprocess.Popen(["true"])
    gone.wait()
    command = [sys.executable, "-m", "lmwire_worker.list_models", "--parent", str(gone.pid)]
    assert subprocess.run(command, capture_output=True, timeout=SECONDS, check=False).returncode == 74


@pytest.fixture
def endless(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every listing of this process be one that never ends."""
    command = [sys.executable, "-c", "import threading; threading.Event().wait()"]
    monkeypatch.setattr(worker_programs, "listing_command", lambda *_: command)


@pytest.mark.usefixtures("endless")
def test_a_listing_that_does_not_end_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_programs, "LISTING_S", 0.1)
    with pytest.raises(LmwireError, match="cannot be listed in"):
        local_models()
    assert not worker_programs.running


@pytest.mark.usefixtures("endless")
def test_a_server_that_ends_ends_its_listings() -> None:
    with ThreadPoolExecutor(1) as pool:
        found = pool.submit(local_models)
        wait_until(lambda: bool(worker_programs.running), "the listing did not start")
        asyncio.run(Pool(Settings()).close())
        with pytest.raises(LmwireError, match="cannot be listed"):
            found.result(SECONDS)
