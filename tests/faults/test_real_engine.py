"""The worker in trouble with a real model: nothing lost, nothing doubled, gone in time."""

import itertools
import random
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import support
from random_model import write_model
from support.models.misbehaving_models import MARK, PRINTS, RAISES, SLOW, write_misbehaving_model
from support.nightly import nightly_but
from support.process.process_waits import GONE_SECONDS, wait_for_pause, wait_gone, watch
from support.process.worker_process import WorkerProcess

pytestmark = pytest.mark.slow

ENDLESS = {"cmd": "generate", "prompt": "hello", "max_tokens": 3000}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("models") / "qwen3", end_scale=0)


@pytest.fixture
def worker() -> Iterator[WorkerProcess]:
    with WorkerProcess() as worker:
        yield worker


def load_misbehaving(worker: WorkerProcess, folder: Path, behaviour: str) -> None:
    worker.load(write_misbehaving_model(folder, behaviour), trust_remote_code=True)


def inside_an_evaluation(worker: WorkerProcess, folder: Path) -> None:
    """Start an evaluation that takes many seconds."""
    load_misbehaving(worker, folder, SLOW)
    worker.send({"id": "work", "cmd": "generate", "prompt": [5, 7, 9, MARK], "max_tokens": 5})
    pings = (worker.call({"id": f"ping{i}", "cmd": "ping"}) for i in itertools.count())
    assert next(pong for pong in pings if pong.get("step_age_ms", 0) > 300)["state"] == "running"
    assert worker.token_ids("work") == []


# What others print.


def test_nothing_that_is_printed_reaches_the_host(worker: WorkerProcess, tmp_path: Path) -> None:
    load_misbehaving(worker, tmp_path / "model", PRINTS)
    done = worker.call({"id": "g", "cmd": "generate", "prompt": [65, 66], "max_tokens": 3})
    assert done["event"] == "done"
    assert worker.token_ids("g") == [67, 68, 69]
    assert worker.quit() == 0
    assert b"PRINTED" not in b"".join(worker.lines)
    for source in (b"Python", b"os.write", b"C", b"a child"):
        assert b"printed to stdout: PRINTED by " + source in worker.stderr


# Failures of the model.


def test_a_model_that_raises_ends_its_requests_and_the_worker_goes_on(worker: WorkerProcess, tmp_path: Path) -> None:
    load_misbehaving(worker, tmp_path / "model", RAISES)
    error = worker.call({"id": "g", "cmd": "generate", "prompt": [5, MARK, 7], "max_tokens": 3})
    assert error["code"] == "engine_error"
    assert "the model's own trouble" in error["error"]
    worker.call({"id": "g2", "cmd": "generate", "prompt": [5, 7], "max_tokens": 3})
    assert worker.token_ids("g2") == [8, 9, 10]


def test_remote_code_does_not_run_unless_allowed(worker: WorkerProcess, tmp_path: Path) -> None:
    folder = write_misbehaving_model(tmp_path / "model", "\n        return logits\n")
    error = worker.call({"id": "l", "cmd": "load", "path": str(folder)})
    assert error["code"] == "unsupported"
    assert "trust_remote_code" in error["error"]


def broken_folders(model: Path, tmp_path: Path) -> dict[str, tuple[Path, str, str]]:
    """Folders that cannot be loaded: the code and a word of the error for each."""
    import shutil

    def copy(name: str) -> Path:
        return Path(shutil.copytree(model, tmp_path / name))

    no_config = copy("no-config")
    (no_config / "config.json").unlink()
    truncated = copy("truncated")
    weights = truncated / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    garbage = copy("garbage")
    (garbage / "model.safetensors").write_bytes(b"not at all" * 100)
    unknown = copy("unknown")
    config = (unknown / "config.json").read_text()
    (unknown / "config.json").write_text(config.replace('"model_type": "qwen3"', '"model_type": "qwen99"'))
    no_weights = copy("no-weights")
    (no_weights / "model.safetensors").unlink()
    return {
        "a folder that does not exist": (tmp_path / "nowhere", "model_not_found", "nowhere"),
        "no config": (no_config, "bad_model", "config.json"),
        "truncated weights": (truncated, "bad_model", "model.safetensors"),
        "garbage for weights": (garbage, "bad_model", "model.safetensors"),
        "an unknown architecture": (unknown, "unsupported", "qwen99"),
        "no weights": (no_weights, "bad_model", "safetensors"),
    }


def test_a_broken_model_is_named_and_the_loaded_one_stays(worker: WorkerProcess, model: Path, tmp_path: Path) -> None:
    worker.load(model)
    for name, (folder, code, word) in broken_folders(model, tmp_path).items():
        error = worker.call({"id": name, "cmd": "load", "path": str(folder)})
        assert (error["event"], error["code"], error["loaded"]) == ("error", code, True), name
        assert word in error["error"], error
    assert worker.call({"id": "g", "cmd": "generate", "prompt": "a", "max_tokens": 2})["event"] == "done"


def test_after_a_broken_model_a_good_one_loads(worker: WorkerProcess, model: Path, tmp_path: Path) -> None:
    for name, (folder, _, _) in broken_folders(model, tmp_path).items():
        assert worker.call({"id": name, "cmd": "load", "path": str(folder)})["loaded"] is False
    worker.load(model)
    assert worker.call({"id": "g", "cmd": "generate", "prompt": "a", "max_tokens": 2})["event"] == "done"


# Cancel.


def test_cancel_mid_prefill(worker: WorkerProcess, tmp_path: Path) -> None:
    folder = write_model(tmp_path / "wide", hidden_size=256, num_hidden_layers=4, max_position_embeddings=65_536)
    worker.load(folder)
    worker.send({"id": "g", "cmd": "generate", "prompt": [9] * 60_000})
    worker.wait_for(lambda event: event["event"] == "progress" and event["stage"] == "prefill")
    worker.send({"id": "c", "cmd": "cancel", "target": "g"})
    done = worker.terminal("g")
    assert (done["finish_reason"], done["usage"]["completion_tokens"]) == ("cancelled", 0)
    worker.call({"id": "next", "cmd": "generate", "prompt": "a", "max_tokens": 2})
    worker.check_terminals(["g", "c", "next"])


def test_a_thousand_random_cancels_end_every_request_once(worker: WorkerProcess, model: Path) -> None:
    worker.load(model)
    worker.call({"id": "alone", "cmd": "generate", "prompt": "abc", "max_tokens": 4})
    rng = random.Random(11)
    ids = [f"r{i}" for i in range(1000)]
    for start in range(0, len(ids), 50):
        batch, waiting = ids[start : start + 50], []
        for id in batch:
            prompt = "abc" * rng.choice([1, 50])
            waiting.append(id)
            rng.shuffle(waiting)
            late = [waiting.pop() for _ in range(rng.randrange(len(waiting) + 1))]
            worker.send(
                {"id": id, "cmd": "generate", "prompt": prompt, "max_tokens": rng.choice([0, 1, 4, 50])},
                *({"id": f"c-{target}", "cmd": "cancel", "target": target} for target in late),
            )
        worker.send(*({"id": f"c-{target}", "cmd": "cancel", "target": target} for target in waiting))
        for id in batch:
            worker.terminal(id)
            worker.terminal(f"c-{id}")
    worker.check_terminals([*ids, *(f"c-{id}" for id in ids)])
    for id in ids:
        done = worker.terminal(id)
        shown = len(worker.token_ids(id))
        assert done["usage"]["completion_tokens"] == shown, done
    worker.call({"id": "again", "cmd": "generate", "prompt": "abc", "max_tokens": 4})
    assert worker.token_ids("again") == worker.token_ids("alone")


# Ends.


@pytest.mark.parametrize("number", nightly_but({signal.SIGTERM}, [signal.SIGTERM, signal.SIGHUP]))
def test_a_signal_inside_an_evaluation(worker: WorkerProcess, tmp_path: Path, number: signal.Signals) -> None:
    inside_an_evaluation(worker, tmp_path / "model")
    worker.signal(number)
    assert worker.process.wait(GONE_SECONDS) == 0
    worker.wait_end()
    assert worker.terminal("work")["finish_reason"] == "cancelled"
    worker.check_terminals(["work"])


@pytest.mark.nightly  # a signal shows the same
def test_quit_inside_an_evaluation(worker: WorkerProcess, tmp_path: Path) -> None:
    inside_an_evaluation(worker, tmp_path / "model")
    worker.send({"id": "q", "cmd": "quit"})
    assert worker.process.wait(GONE_SECONDS) == 0
    worker.wait_end()
    worker.check_terminals(["work", "q"])
    assert worker.events[-1]["id"] == "q"


def test_ping_and_cancels_are_answered_inside_an_evaluation(worker: WorkerProcess, tmp_path: Path) -> None:
    inside_an_evaluation(worker, tmp_path / "model")
    worker.send({"id": "waits", "cmd": "load", "path": "anything"}, {"id": "p", "cmd": "ping"})
    assert worker.terminal("p")["state"] == "running"
    worker.send({"id": "c", "cmd": "cancel", "target": "waits"})
    assert worker.terminal("waits")["code"] == "cancelled"
    worker.send({"id": "c2", "cmd": "cancel", "target": "work"})
    assert worker.terminal("c2")["matched"] == 1
    assert worker.terminal("work")["finish_reason"] == "cancelled"


RELAY = str(Path(support.__file__).parent / "process/relay_host.py")


def test_a_host_that_is_killed_inside_an_evaluation_takes_the_worker_with_it(tmp_path: Path) -> None:
    """test_host_deaths.py has the other states."""
    with WorkerProcess(command=[sys.executable, RELAY]) as host:
        pid = host.call({"id": "h", "cmd": "hello"})["pid"]
        inside_an_evaluation(host, tmp_path / "model")
        watched = watch(pid)
        host.process.kill()
        wait_gone(watched)


# Flow.


@pytest.mark.nightly  # the transcript w-1-unread shows it of the mock
def test_a_host_that_stops_reading_gets_the_same_text_when_it_resumes(model: Path) -> None:
    many = {"cmd": "generate", "max_tokens": 200, "temperature": 1, "logprobs": True, "top_logprobs": 5}  # in bytes too
    requests: list[dict[str, Any]] = [{"id": f"r{i}", "prompt": f"prompt {i}", "seed": i, **many} for i in range(8)]
    texts = []
    for read in (True, False):
        with WorkerProcess(read=read) as worker:
            worker.send({"id": "l", "cmd": "load", "path": str(model)}, *requests)
            if not read:
                wait_for_pause(worker)
                worker.start_reading()
            for request in requests:
                worker.terminal(request["id"])
            texts.append([(worker.text(request["id"]), worker.token_ids(request["id"])) for request in requests])
    assert texts[0] == texts[1]
    assert sum(len(token_ids) for _, token_ids in texts[0]) > 1000
