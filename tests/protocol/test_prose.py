"""The transcripts in the protocol's text are valid conversations, and its rules and links are consistent."""

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from lmwire_conformance.vector import without_nulls
from lmwire_protocol import CODES, COMMANDS, Command, RequestError, events, limits
from support.protocol import prose
from support.protocol.prose import Transcript
from support.protocol.reading import event_kind, read_command, read_event, schema_accepts

TRANSCRIPTS = prose.transcripts("transcript")
PAGES = [
    *prose.DOCUMENTS,
    *sorted(prose.ROOT.glob("docs/*.md")),
    *(
        prose.ROOT / name
        for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", "worker/MOCK.md")
    ),
    prose.ROOT / "tools" / "tiny_model" / "README.md",
    *(prose.ROOT / "protocol" / name for name in ("lmwire_conformance/HOSTS.md", "vectors/README.md")),
]
"""Pages of the repository whose links are checked."""


class Conversation:
    """The lines of a host and a worker, checked against the rules for ids and terminals."""

    def __init__(self) -> None:
        self.in_flight: dict[str, Command | RequestError] = {}
        self.stray: list[tuple[str | None, RequestError]] = []
        self.cancelled_by: set[str] = set()
        self.tokens: Counter[str] = Counter()

    def host(self, line: str) -> None:
        id, command = read_command(line.encode())
        if id is None or id in self.in_flight:
            error = command if isinstance(command, RequestError) else RequestError("duplicate_id", "in flight")
            self.stray.append((id, error))
            return
        self.in_flight[id] = command
        if isinstance(command, Command):
            assert schema_accepts("Command", without_nulls(json.loads(line)))
        else:
            assert command.code in CODES

    def worker(self, line: str) -> None:
        value = json.loads(line)
        sent = self.in_flight.get(value.get("id"))
        name = sent.name if isinstance(sent, Command) else None
        event = read_event(line.encode(), name)
        assert event is not None
        assert schema_accepts(event_kind(value["event"], name), value)
        if isinstance(event, events.Error):
            self.error(event, sent)
            return
        assert isinstance(sent, Command)
        if isinstance(event, events.Done):
            self.done(event, sent)
            del self.in_flight[event.id]
        else:
            assert type(event) in sent.streams
            if isinstance(event, events.Token):
                self.tokens[event.id] += len(event.token_ids)

    def error(self, event: events.Error, sent: Command | RequestError | None) -> None:
        if event.code != "model_not_found":
            assert event.retryable == CODES[event.code][0]
        if event.id is None:
            id, error = self.stray.pop(0)
            assert (event.bad_id, event.code, event.field) == (id, error.code, error.field)
            return
        if isinstance(sent, RequestError):
            assert (event.code, event.field) == (sent.code, sent.field)
            assert event.error == sent.message
        else:
            assert sent is not None
            assert (event.loaded is not None) == (sent.name == "load")
        del self.in_flight[event.id]

    def done(self, event: events.Done, sent: Command) -> None:
        if isinstance(event, events.ResultDone):
            shown = self.tokens.pop(event.id, 0)
            hidden = sum(
                (choice.finish_reason, choice.stop) in (("stop", None), ("tool_calls", None))
                for choice in event.choices or [event]
            )
            assert event.usage.completion_tokens == shown + hidden
        if isinstance(event, events.TokenizeDone):
            assert event.count == self.tokens.pop(event.id, event.count)
        if isinstance(event, events.QuitDone):
            assert all(command is sent or command.done is events.QuitDone for command in self.commands())

    def commands(self) -> list[Any]:
        return list(self.in_flight.values())


@pytest.mark.parametrize(
    "transcript", TRANSCRIPTS, ids=lambda item: f"{item.document}, {item.heading}, line {item.number}"
)
def test_a_transcript_keeps_the_rules(transcript: Transcript) -> None:
    conversation = Conversation()
    for arrow, line in transcript.lines:
        assert len(line.encode()) < limits.LINE_OUT_BYTES
        {"→": conversation.host, "←": conversation.worker}[arrow](line)
    assert conversation.in_flight == {}, "each request ends with a terminal"
    assert conversation.stray == [], "each refused line is answered"


def test_every_command_has_a_transcript_under_its_own_heading() -> None:
    for name in COMMANDS:
        lines = [line for item in TRANSCRIPTS if item.heading == name for arrow, line in item.lines if arrow == "→"]
        assert any(json.loads(line)["cmd"] == name for line in lines), name


def test_the_transcripts_show_a_cancel_an_invalid_request_a_failed_load_and_a_quit_with_drain() -> None:
    said = "\n".join(line for item in TRANSCRIPTS for _, line in item.lines)
    for needed in ('"finish_reason":"cancelled"', '"invalid_request"', '"loaded":false', '"drain":true'):
        assert needed in said


def test_the_bridge_transcript_is_json_without_ids() -> None:
    (transcript,) = prose.transcripts("bridge")
    for _, line in transcript.lines:
        assert "id" not in json.loads(line)


def test_no_two_rules_share_a_name_and_they_count_up() -> None:
    parts = [prose.rules(document) for document in prose.DOCUMENTS]
    numbers: dict[str, list[int]] = {}
    for rule in prose.rules():
        letter, number = rule.split("-")
        numbers.setdefault(letter, []).append(int(number))
    for letter, found in numbers.items():
        assert sorted(found) == list(range(1, len(found) + 1)), letter
    for part in parts:
        for letter in numbers:
            order = [int(rule.partition("-")[2]) for rule in part if rule.startswith(f"{letter}-")]
            assert order == sorted(order), letter


def test_every_cited_rule_exists() -> None:
    assert prose.cited_rules() <= set(prose.rules())


@pytest.mark.parametrize("document", PAGES, ids=lambda page: str(page.relative_to(prose.ROOT)))
def test_every_link_leads_to_a_file_and_a_heading(document: Path) -> None:
    for link in prose.links(document):
        path, _, fragment = link.partition("#")
        target = (document.parent / path).resolve() if path else document
        assert target.exists(), link
        assert not fragment or fragment in prose.anchors(target), link


def test_the_architecture_names_functions_that_exist() -> None:
    page = (prose.ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    named = re.findall(r"`(\w+)` in \[[^]]*\]\(([^)]*)\)", page)
    assert named
    for function, file in named:
        assert f"def {function}(" in (prose.ROOT / file).read_text(encoding="utf-8"), f"{function} is not in {file}"


def test_the_core_is_short() -> None:
    assert len(prose.CORE.read_bytes()) < 40 * 1024
