"""The life and death of ranks: each request has one terminal, and no process is left."""

import operator
import os
import queue
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest

from lmwire_worker.ranks.group import Follower
from lmwire_worker.ranks.hosts import local_hosts
from random_model import write_model
from support.http.http_server import wait_until
from support.models.random_embeddings import write_embedding_model
from support.process.process_waits import stop, wait_gone, watch
from support.process.ranked_worker import BACKEND, RankedWorker
from support.process.worker_process import SECONDS

pytestmark = pytest.mark.slow

RANK_LOST: Final = 70
PARTING: Final = Path(__file__).parents[1] / "parting_site"
ENDLESS: Final = {"cmd": "generate", "prompt": "hello", "max_tokens": 3000, "ignore_eos": True}


@pytest.fixture
def worker(folder_of: Callable[[str], Path]) -> Iterator[RankedWorker]:
    with RankedWorker(2) as worker:
        done = worker.load(folder_of("llama"))
        assert done["ranks"]["size"] == 2
        yield worker


@pytest.fixture(scope="module")
def shared(folder_of: Callable[[str], Path]) -> Iterator[RankedWorker]:
    """A worker for tests that leave it as it is."""
    with RankedWorker(2) as worker:
        worker.load(folder_of("llama"))
        yield worker


def parting(way: str) -> RankedWorker:
    """A worker whose second rank goes its own way."""
    path = os.pathsep.join([str(PARTING), os.environ.get("PYTHONPATH", "")])
    return RankedWorker(2, env={**os.environ, "PYTHONPATH": path, "PARTS": way})


def test_hello_lists_no_feature_that_ranks_refuse(shared: RankedWorker) -> None:
    features = shared.call({"id": "h 0", "cmd": "hello"})["features"]
    assert "load.context_len" in features
    assert not {"load.kv_bits", "load.adapter_path", "load.draft_path", "embed", "transcribe", "speak"} & {*features}


def test_hello_names_the_ranks_before_any_load() -> None:
    with RankedWorker(2) as worker:
        hello = worker.call({"id": "h", "cmd": "hello"})
        assert hello["ranks"] == {"size": 2, "backend": BACKEND}


def test_info_names_the_ranks_and_their_parts(shared: RankedWorker) -> None:
    info = shared.call({"id": "i 1", "cmd": "info"})
    ranks = info["ranks"]
    assert (ranks["size"], ranks["backend"], ranks["split"]) == (2, BACKEND, "tensor")
    assert ranks["weights_bytes"][0] == ranks["weights_bytes"][1]
    assert sum(ranks["weights_bytes"]) == info["weights_bytes"]


def test_a_quit_leaves_no_process(worker: RankedWorker) -> None:
    followers = worker.followers()
    assert len(followers) == 1
    assert worker.quit() == 0
    worker.wait_all_gone(followers)


def test_a_signal_to_the_group_ends_the_ranks_in_order(folder_of: Callable[[str], Path]) -> None:
    with RankedWorker(2, "--process-group") as worker:
        worker.load(folder_of("llama"))
        worker.send({"id": "a", **ENDLESS})
        worker.first_token("a")
        followers = worker.followers()
        os.killpg(worker.process.pid, signal.SIGTERM)
        assert worker.wait_end() == 0
        assert worker.terminal("a")["finish_reason"] == "cancelled"
        worker.wait_all_gone(followers)


def test_a_signal_ends_no_follower_that_has_yet_to_start() -> None:
    """Rank 0 may get a signal, with its group, while Python or ssh starts. `cat` sends frames back."""
    signals = "".join(f"kill -{name} $$; " for name in ("INT", "TERM", "HUP"))
    lost: queue.SimpleQueue[str] = queue.SimpleQueue()
    (here,) = local_hosts(1)
    follower = Follower(1, here, ["sh", "-c", f"{signals} exec cat"], lambda _, why: lost.put(why), lambda _: None)
    follower.writer.write("alive")
    assert follower.inbox.take(SECONDS) == ("alive", None)
    follower.kill()
    assert lost.get(timeout=SECONDS) == "its process has ended"


def test_another_model_takes_the_place_of_the_first(worker: RankedWorker, folder_of: Callable[[str], Path]) -> None:
    worker.load(folder_of("qwen3"), id="second")
    assert worker.call({"id": "g", "cmd": "generate", "prompt": "hello", "max_tokens": 3})["event"] == "done"
    assert worker.call({"id": "u", "cmd": "unload"})["freed_bytes"] > 0
    worker.load(folder_of("llama"), id="third")
    assert worker.call({"id": "h", "cmd": "generate", "prompt": "hello", "max_tokens": 3})["event"] == "done"


def test_a_refused_load_keeps_the_present_model(shared: RankedWorker, tmp_path: Path) -> None:
    missing = shared.call({"id": "m 2", "cmd": "load", "path": str(tmp_path / "none")})
    assert missing["code"] == "model_not_found"
    assert shared.call({"id": "g 2", "cmd": "generate", "prompt": "hello", "max_tokens": 3})["event"] == "done"


def test_what_ranks_do_not_support_is_refused_by_name_and_starts_nothing(
    shared: RankedWorker, folder_of: Callable[[str], Path]
) -> None:
    followers = shared.followers()
    fields = {"kv_bits": 8, "draft_path": "x", "adapter_path": "x", "trust_remote_code": True}
    for name, value in fields.items():
        refused = shared.call({"id": name, "cmd": "load", "path": str(folder_of("llama")), name: value})
        assert (refused["code"], refused["field"]) == ("unsupported", name)
    assert shared.followers() == followers


def test_an_architecture_that_cannot_be_split_is_refused_by_name(
    shared: RankedWorker, folder_of: Callable[[str], Path]
) -> None:
    refused = shared.call({"id": "l 4", "cmd": "load", "path": str(folder_of("gemma3_text"))})
    assert refused["code"] == "unsupported"
    assert "`gemma3_text`" in refused["error"]


def test_a_model_that_generates_no_text_is_refused(shared: RankedWorker, tmp_path: Path) -> None:
    refused = shared.call({"id": "l 5", "cmd": "load", "path": str(write_embedding_model(tmp_path / "embedding"))})
    assert (refused["code"], refused["field"]) == ("unsupported", "path")
    assert "only those are split over ranks" in refused["error"]


def test_layers_that_cannot_be_shared_evenly_are_refused_before_the_present_model_is_released(
    worker: RankedWorker, tmp_path: Path
) -> None:
    """With a growing cache in each fourth layer of six, one rank has one, and the other none."""
    even = write_model(tmp_path / "uneven", "qwen3_next", num_hidden_layers=6, full_attention_interval=3)
    lopsided = write_model(tmp_path / "lopsided", "qwen3_next", num_hidden_layers=6, full_attention_interval=4)
    refused = worker.call({"id": "l", "cmd": "load", "path": str(lopsided)})
    assert (refused["code"], "cannot share the model's layers evenly" in refused["error"]) == ("unsupported", True)
    assert worker.call({"id": "g", "cmd": "generate", "prompt": "hello", "max_tokens": 3})["event"] == "done"
    assert worker.load(even, id="even")["ranks"]["split"] == "pipeline"


def test_heads_that_cannot_be_shared_are_refused_with_their_number(folder_of: Callable[[str], Path]) -> None:
    with RankedWorker(3) as worker:
        refused = worker.call({"id": "l", "cmd": "load", "path": str(folder_of("llama"))})
        assert "4 of num_attention_heads, which 3 ranks cannot share" in refused["error"]


# A rank is lost.

KILL, STOP = signal.SIGKILL, signal.SIGSTOP


def _loading(worker: RankedWorker, folder: Path) -> list[str]:
    stop(worker.followers()[0])  # so that the load cannot end before the signal
    worker.send({"id": "l", "cmd": "load", "path": str(write_model(folder, "llama"))})
    worker.wait_for(lambda event: (event["event"], event["id"]) == ("progress", "l"))
    return ["l"]


def _idle(worker: RankedWorker, folder: Path) -> list[str]:
    return []


def _prefill(worker: RankedWorker, folder: Path) -> list[str]:
    ids = ["a", "b", "c"]
    for id in ids:
        worker.send({"id": id, "cmd": "generate", "prompt": [5 + i % 400 for i in range(3900)], "max_tokens": 100})
    worker.wait_for(lambda event: event["event"] == "progress" and event["stage"] == "prefill")
    return ids


def _decode(worker: RankedWorker, folder: Path) -> list[str]:
    worker.send({"id": "a", **ENDLESS}, {"id": "b", **ENDLESS})
    worker.first_token("a")
    return ["a", "b"]


def _cancel(worker: RankedWorker, folder: Path) -> list[str]:
    ids = _decode(worker, folder)
    worker.send({"id": "c", "cmd": "cancel", "target": "a"})
    return [*ids, "c"]


STATES: Final = {"loading": _loading, "idle": _idle, "prefill": _prefill, "decode": _decode, "cancel": _cancel}
EACH_COMMIT: Final = [("decode", KILL), ("idle", STOP), ("loading", KILL)]


@pytest.mark.parametrize(
    ("state", "number"),
    [
        pytest.param(
            *(state, number),
            id=f"{state}-{number.name}",
            marks=[] if (state, number) in EACH_COMMIT else pytest.mark.nightly,
        )
        for state in STATES
        for number in (KILL, STOP)
    ],
)
def test_a_lost_rank_ends_every_request_once_with_the_reason(
    worker: RankedWorker, tmp_path: Path, state: str, number: signal.Signals
) -> None:
    ids = STATES[state](worker, tmp_path)
    followers = worker.followers()
    worker.signal_rank(1, number)
    assert worker.wait_end() == RANK_LOST
    for id in ids:
        terminal = worker.terminal(id)
        if state == "cancel" and id in ("a", "c"):
            continue  # the cancel may be first
        assert (terminal["code"], "rank 1 is lost" in terminal["error"]) == ("internal", True)
    worker.check_terminals(ids)
    worker.wait_all_gone(followers)


@pytest.mark.nightly
def test_followers_end_when_rank_0_is_stopped(worker: RankedWorker) -> None:
    _decode(worker, Path())
    watched = [watch(pid) for pid in worker.followers()]
    worker.signal(STOP)
    for follower in watched:
        wait_gone(follower)
    worker.signal(signal.SIGCONT)
    assert worker.wait_end() == RANK_LOST
    worker.check_terminals(["a", "b"])


def test_no_rank_outlives_rank_0(worker: RankedWorker) -> None:
    worker.send({"id": "a", **ENDLESS})
    worker.first_token("a")
    watched = [watch(pid) for pid in worker.followers()]
    worker.signal(signal.SIGKILL)
    for follower in watched:
        wait_gone(follower)


def test_a_lost_rank_is_the_reason_also_if_mlx_notices_it_first(folder_of: Callable[[str], Path]) -> None:
    with parting("end") as worker:
        worker.load(folder_of("llama"))
        worker.send({"id": "a", **ENDLESS})
        assert worker.wait_end() == RANK_LOST
        assert "rank 1 is lost" in worker.terminal("a")["error"]


@pytest.mark.parametrize("way", ["tokens", "failure", pytest.param("calls", marks=pytest.mark.nightly)])
def test_a_rank_that_goes_its_own_way_ends_all(folder_of: Callable[[str], Path], way: str) -> None:
    with parting(way) as worker:
        worker.send({"id": "l", "cmd": "load", "path": str(folder_of("llama"))}, {"id": "a", **ENDLESS})
        assert worker.wait_end() == RANK_LOST
        worker.check_terminals(["l", "a"])
        assert "rank 1 is lost" in worker.terminal("a")["error"]
        assert b"a rank failed" in worker.stderr


def test_rank_0_renders_the_prompts_of_all(folder_of: Callable[[str], Path]) -> None:
    """A template that takes just about its limit of time would be refused by one rank, and not by another."""
    with parting("prompts") as worker:
        worker.load(folder_of("llama"))
        chat = {"cmd": "chat", "messages": [{"role": "user", "content": "Hello!"}], "max_tokens": 5}
        assert worker.call({"id": "a", **chat})["event"] == "done"
        assert worker.call({"id": "b", **chat, "format": {"type": "json_object"}})["event"] == "done"
        refused = worker.call({"id": "c", **chat, "chat_template": "{{ nothing.at.all }}"})
        assert refused["code"] == "invalid_request"
        assert worker.quit() == 0


def test_a_rank_that_does_not_start_ends_the_worker_with_the_reason(folder_of: Callable[[str], Path]) -> None:
    with parting("imports") as worker:
        worker.send({"id": "l", "cmd": "load", "path": str(folder_of("llama"))})
        assert worker.wait_end() == RANK_LOST
        assert "rank 1 is lost: its process has ended" in worker.terminal("l")["error"]


# Other machines.


def test_a_machine_without_ssh_gets_a_sentence(tmp_path: Path, folder_of: Callable[[str], Path]) -> None:
    hosts = tmp_path / "hosts.json"
    hosts.write_text('[{"ssh": "here", "ips": ["127.0.0.1"]}, {"ssh": "mini", "ips": ["127.0.0.1"]}]')
    with RankedWorker(hosts, env={**os.environ, "PATH": str(tmp_path)}) as worker:
        worker.send({"id": "l", "cmd": "load", "path": str(folder_of("llama"))})
        assert worker.wait_end() == RANK_LOST
        assert "rank 1 cannot be started" in worker.terminal("l")["error"]


def test_a_rank_on_another_machine_is_reached_by_ssh(tmp_path: Path, folder_of: Callable[[str], Path]) -> None:
    ssh = tmp_path / "ssh"
    ssh.write_text('#!/bin/sh\nwhile [ "$1" != mini ]; do shift; done\nshift\nexec sh -c "exec $*"\n')
    ssh.chmod(0o755)
    hosts = tmp_path / "hosts.json"
    hosts.write_text('[{"ssh": "here", "ips": ["127.0.0.1"]}, {"ssh": "mini", "ips": ["127.0.0.1"]}]')
    env = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    with RankedWorker(hosts, env=env) as worker:
        worker.load(folder_of("llama"))
        done = worker.call({"id": "g", "cmd": "generate", "prompt": "hello", "max_tokens": 3})
        assert done["event"] == "done"
        worker.signal_rank(1, signal.SIGKILL)
        assert worker.wait_end() == RANK_LOST
        assert b"rank 1 on mini is lost" in worker.stderr


# Nothing is left.


def _descriptors(pids: list[int]) -> list[int]:
    return [len(os.listdir(f"/proc/{pid}/fd")) for pid in pids]


def test_loads_leave_no_descriptor_and_no_file(tmp_path: Path, folder_of: Callable[[str], Path]) -> None:
    with RankedWorker(2, env={**os.environ, "TMPDIR": str(tmp_path)}) as worker:
        worker.load(folder_of("llama"), id="first")
        pids = [worker.process.pid, *worker.followers()]
        before = _descriptors(pids)
        for number in range(3):
            worker.load(folder_of("qwen3"), id=f"load {number}")
            refused = worker.call({"id": f"no {number}", "cmd": "load", "path": str(folder_of("gemma3_text"))})
            assert refused["code"] == "unsupported"
        worker.load(folder_of("llama"), id="last")
        assert [worker.process.pid, *worker.followers()] == pids
        # One may be in passing, such as a pipe to a process that starts. Each of seven loads would leave its own.
        wait_until(lambda: all(map(operator.le, _descriptors(pids), before)), "the loads left descriptors")
        assert worker.quit() == 0
    assert not [*tmp_path.glob("lmwire*")]


def test_a_quit_while_answers_run_leaves_no_process(worker: RankedWorker) -> None:
    ids = _decode(worker, Path())
    followers = worker.followers()
    assert worker.quit() == 0
    worker.check_terminals(ids)
    worker.wait_all_gone(followers)


def test_the_end_of_stdin_lets_answers_end_and_leaves_no_process(worker: RankedWorker) -> None:
    worker.send({"id": "a", **ENDLESS, "max_tokens": 30})
    followers = worker.followers()
    worker.close_stdin()
    assert worker.wait_end() == 0
    assert worker.terminal("a")["finish_reason"] == "length"
    worker.check_terminals(["a"])
    worker.wait_all_gone(followers)
