"""Rules that hold for any session, whatever its requests and its timing."""

from collections import Counter, defaultdict
from collections.abc import Sequence

from support.process.worker_process import TERMINALS, Event

ALL = ""
"""The target of a cancel of all; no id is empty."""


def check_session(sent: Sequence[Event], events: Sequence[Event], ending: int | None = None) -> None:
    """Check a session that is over.

    Args:
        sent: the commands, each with a usable id, in their order.
        events: all that the worker wrote.
        ending: number of commands that the worker served before it ended; None means that it served all.
    """
    check_answers(sent, events, len(sent) if ending is None else ending)
    check_nothing_comes_after_the_end(events)
    if ending is None:
        check_cancels_come_first(sent, events)
    check_quits_come_last(sent, events)


def check_answers(sent: Sequence[Event], events: Sequence[Event], ending: int) -> None:
    """Check [T-1], [I-3], [I-5]: one answer to each line, a terminal or an error that names its id as taken."""
    answers = Counter(event.get("id", event.get("bad_id")) for event in events if event["event"] in TERMINALS)
    least, most = Counter(command["id"] for command in sent[:ending]), Counter(command["id"] for command in sent)
    assert answers.keys() <= most.keys()
    for id in most:
        assert least[id] <= answers[id] <= most[id], f"{id!r}: {answers[id]} answers to {most[id]} lines"


def check_nothing_comes_after_the_end(events: Sequence[Event]) -> None:
    """Check [T-1]: an id's last event is a terminal."""
    last = {event["id"]: event["event"] for event in events if "id" in event}
    assert set(last.values()) <= set(TERMINALS), last


def check_cancels_come_first(sent: Sequence[Event], events: Sequence[Event]) -> None:
    """Check [C-3], [O-2]: a request is cancelled only after the `done` of a cancel that targets it."""
    targets: dict[str, set[str]] = defaultdict(set)
    for command in sent:
        if command["cmd"] == "cancel":
            targets[command["id"]].add(command.get("target", ALL))
    meant: set[str] = set()
    for event in events:
        if event["event"] == "done" and event.get("matched"):
            meant |= targets[event["id"]]
        elif "cancelled" in (event.get("finish_reason"), event.get("code")):
            assert meant & {event["id"], ALL}, f"{event['id']!r} was cancelled before its cancel was answered"


def check_quits_come_last(sent: Sequence[Event], events: Sequence[Event]) -> None:
    """Check [O-2]: the `done`s of quits are the last lines."""
    quits = {command["id"] for command in sent if command["cmd"] == "quit"}
    done = [event["event"] == "done" and event.get("id") in quits for event in events]
    assert done == sorted(done), events[-5:]
    assert any(done) or not quits
