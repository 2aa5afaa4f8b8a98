"""The outbox: order, merging, marks, and the end of the host. No process, no model."""

import os
import threading
from collections.abc import Iterator

import msgspec
import pytest

from lmwire_protocol.events import Channel, Logprob, Token
from lmwire_worker.process.stdio import Pipes
from lmwire_worker.session import output_queue as outbox_module
from lmwire_worker.session.output_queue import OutputQueue
from support.process.worker_process import SECONDS


class Written:
    """An output queue on a pipe. Its writer starts with `start`, and `lines` reads its output back."""

    def __init__(self) -> None:
        self.read_end, write_end = os.pipe()
        self.outbox = OutputQueue(Pipes(-1, write_end, -1).write)
        self.drained = threading.Event()
        self.broken = threading.Event()

    def start(self) -> threading.Thread:
        run = threading.Thread(target=self.outbox.run, args=(self.drained.set, self.broken.set), daemon=True)
        run.start()
        return run

    def lines(self) -> list[dict[str, object]]:
        self.outbox.flush(SECONDS)
        return [msgspec.json.decode(line) for line in os.read(self.read_end, 1 << 20).splitlines()]


def token(
    id: str,
    text: str,
    token_ids: list[int],
    choice: int = 0,
    channel: Channel = "content",
    logprobs: list[Logprob] | None = None,
) -> Token:
    return Token(id=id, token=text, token_ids=token_ids, choice=choice, channel=channel, logprobs=logprobs)


@pytest.fixture
def written() -> Iterator[Written]:
    yield Written()


def test_lines_are_written_in_the_order_of_their_coming(written: Written) -> None:
    written.outbox.put_reply(b'{"n":1}\n')
    written.outbox.put_tokens(token("a", "x", [1]))
    written.outbox.put_stream(b'{"n":2}\n')
    written.outbox.put_terminal("a", b'{"n":3}\n')
    written.start()
    assert [line.get("n") or line["token"] for line in written.lines()] == [1, "x", 2, 3]


def test_below_the_merge_threshold_tokens_stay_separate(written: Written) -> None:
    written.outbox.put_tokens(token("a", "x", [1]))
    written.outbox.put_tokens(token("a", "y", [2]))
    written.start()
    assert [line["token"] for line in written.lines()] == ["x", "y"]


def test_above_the_merge_threshold_tokens_of_one_request_merge(
    written: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outbox_module, "MERGE_THRESHOLD_BYTES", 0)
    for n in range(3):
        written.outbox.put_tokens(token("a", f"a{n}", [n]))
        written.outbox.put_tokens(token("b", f"b{n}", [10 + n]))
    written.start()
    assert [(line["id"], line["token"], line["token_ids"]) for line in written.lines()] == [
        ("a", "a0a1a2", [0, 1, 2]),
        ("b", "b0b1b2", [10, 11, 12]),
    ]


def test_tokens_never_merge_across_a_terminal(written: Written, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbox_module, "MERGE_THRESHOLD_BYTES", 0)
    written.outbox.put_tokens(token("a", "old", [1]))
    written.outbox.put_terminal("a", b'{"end":1}\n')
    written.outbox.put_tokens(token("a", "new", [2]))
    written.start()
    assert [line.get("token") for line in written.lines()] == ["old", None, "new"]


def test_only_tokens_of_one_choice_and_channel_merge(written: Written, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbox_module, "MERGE_THRESHOLD_BYTES", 0)
    written.outbox.put_tokens(token("a", "a", [1], 0, "reasoning"))
    written.outbox.put_tokens(token("a", "b", [1], 1))
    written.outbox.put_tokens(token("a", "c", [1], 0, "reasoning"))
    written.outbox.put_tokens(token("a", "d", [1], 0))
    written.start()
    assert [(line.get("choice", 0), line.get("channel", "content"), line["token"]) for line in written.lines()] == [
        (0, "reasoning", "ac"),
        (1, "content", "b"),
        (0, "content", "d"),
    ]


def test_tokens_never_merge_across_a_tool_call_of_their_request(
    written: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outbox_module, "MERGE_THRESHOLD_BYTES", 0)
    for _ in range(2):
        written.outbox.put_tokens(token("a", "x", [1]))
        written.outbox.put_tokens(token("b", "y", [1]))
        written.outbox.put_tool_call("a", b'{"call":1}\n')
    written.start()
    assert [line.get("token", "call") for line in written.lines()] == ["x", "yy", "call", "x", "call"]


def test_log_probabilities_merge_with_their_tokens(written: Written, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbox_module, "MERGE_THRESHOLD_BYTES", 0)
    written.outbox.put_tokens(token("a", "text that was held back", []))
    for n in range(3):
        written.outbox.put_tokens(token("a", str(n), [n], logprobs=[Logprob(n, str(n), -0.5)]))
    written.start()
    (merged,) = [msgspec.convert(line, Token) for line in written.lines()]
    assert [entry.token_id for entry in merged.logprobs or []] == merged.token_ids == [0, 1, 2]


def test_merging_changes_nothing_of_what_the_runner_gave(written: Written, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbox_module, "MERGE_THRESHOLD_BYTES", 0)
    deltas = [token("a", str(n), [n]) for n in range(3)]
    for delta in deltas:
        written.outbox.put_tokens(delta)
    written.start()
    assert [line["token"] for line in written.lines()] == ["012"]
    assert deltas == [token("a", str(n), [n]) for n in range(3)]


def test_the_queue_is_full_above_the_pause_threshold_and_reports_when_it_is_not(
    written: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outbox_module, "PAUSE_THRESHOLD_BYTES", 100)
    written.outbox.put_tokens(token("a", "x" * 200, [1]))
    assert written.outbox.is_full
    written.start()
    assert written.drained.wait(SECONDS)
    assert not written.outbox.is_full
    assert written.outbox.waiting_bytes == 0


def test_replies_and_terminals_do_not_count_towards_a_full_queue(
    written: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outbox_module, "PAUSE_THRESHOLD_BYTES", 100)
    for _ in range(100):
        written.outbox.put_reply(b'{"pong":1}\n')
        written.outbox.put_terminal("a", b'{"end":1}\n')
    assert not written.outbox.is_full


def test_a_closed_queue_takes_no_output(written: Written) -> None:
    written.outbox.put_reply(b'{"n":1}\n')
    written.outbox.close()
    written.outbox.put_reply(b'{"n":2}\n')
    written.start()
    assert written.lines() == [{"n": 1}]


def test_the_writer_ends_when_a_closed_queue_is_written(written: Written) -> None:
    run = written.start()
    written.outbox.put_reply(b'{"n":1}\n')
    written.outbox.close()
    run.join(SECONDS)
    assert (run.is_alive(), written.lines()) == (False, [{"n": 1}])


def test_a_lost_host_is_reported_once_and_blocks_no_writer(written: Written) -> None:
    os.close(written.read_end)
    written.outbox.put_reply(b'{"n":1}\n')
    written.start()
    assert written.broken.wait(SECONDS)
    written.outbox.put_tokens(token("a", "x" * 10**7, [1]))
    written.outbox.wait_for_reply_capacity()
    written.outbox.flush()
    assert not written.outbox.is_full
