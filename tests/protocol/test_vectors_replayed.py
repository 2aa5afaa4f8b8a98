"""A real worker answers the vectors as they state, with lines that are valid under the schema."""

import pytest

from lmwire_conformance.vector import Vector, read
from support.process.worker_process import Event, WorkerProcess
from support.protocol.reading import event_kind, schema_accepts

pytestmark = pytest.mark.slow

ENDS_THE_WORKER = {"hello: protocol, both at the highest"}
NAMES_A_PROCESS = {"hello: every field", "hello: host_pid at its lowest", "hello: host_pid at its highest"}
HELLO = {"id": "hello", "cmd": "hello"}


def answer(worker: WorkerProcess, vector: Vector) -> Event:
    """Return the first event after a message. It is the terminal of every vector, since no model is loaded."""
    before = len(worker.events)
    worker.write(vector.line + b"\n")
    return worker.wait_for(lambda event: any(event is late for late in worker.events[before:]))


def test_invalid_commands_get_their_code_field_and_id_and_harm_nothing() -> None:
    vectors = read("commands.invalid")
    with WorkerProcess("--mock") as worker:
        worker.call(HELLO)
        worker.write(b"".join(vector.line + b"\n" for vector in vectors))
        assert worker.call({"id": "after", "cmd": "ping"})["event"] == "done"
        _, *refusals, _ = worker.events
    got = [(event["code"], event.get("field"), event.get("id")) for event in refusals]
    assert got == [(vector.entry["code"], vector.entry.get("field"), vector.entry["id"]) for vector in vectors]
    assert all(schema_accepts("Error", event) for event in refusals)


def test_valid_commands_are_taken_and_answered_in_lines_of_the_schema() -> None:
    beyond = ENDS_THE_WORKER | NAMES_A_PROCESS
    with WorkerProcess("--mock") as worker:
        worker.call(HELLO)
        for vector in read("commands.valid"):
            if vector.name in beyond or vector.entry["cmd"] == "quit":
                continue
            event = answer(worker, vector)
            assert event["id"] == vector.entry["id"], vector.name
            assert event.get("code") in (None, "not_loaded", "model_not_found"), vector.name
            assert schema_accepts(event_kind(event["event"], vector.entry["cmd"]), event), vector.name
