"""The events that the user of a client gets, in one canonical form."""

import json
import os
import struct
import subprocess
from collections import defaultdict
from collections.abc import Sequence
from threading import Timer
from typing import Any, Final

from support.process.worker_process import SECONDS

from .client_transcripts import Transcript

_DEFAULTS: Final[dict[str, Any]] = {
    "choice": 0,
    "channel": "content",
    "call": False,
    "top": [],
    "arguments": "",
    "reasoning_tokens": 0,
    "draft_accepted": 0,
    # Go's zero values of absent texts and times, which no worker sends.
    **dict.fromkeys(("call_id", "name", "stop"), ""),
    **dict.fromkeys(("prefill_ms", "first_token_ms", "prompt_tps", "decode_tps"), 0),
}
"""Values that mean the same as an absent field."""
_IGNORED: Final = ("id", "event")


def canonical(value: Any) -> Any:
    """Return a value without absent members, ids and names of events.

    A number without a fraction is an integer, unless it is -0.0.
    """
    if isinstance(value, dict):
        members: dict[str, Any] = {name: canonical(member) for name, member in value.items()}
        if "vectors" in members:
            members["vectors"] = [[_as_float32(number) for number in vector] for vector in members["vectors"]]
        return {name: member for name, member in members.items() if not _is_absent(name, member)}
    if isinstance(value, list):
        return [*map(canonical, value)]
    if isinstance(value, float) and value.is_integer() and str(value) != "-0.0":
        return int(value)
    return value


def event_bytes(kind: str, event: dict[str, Any]) -> bytes:
    """Return the canonical form of an event.

    Args:
        kind: The kind of event.
        event: Its members.
    """
    return json.dumps({**canonical(event), "event": kind}, sort_keys=True).encode()


def expected_events(transcript: Transcript, client: str) -> list[bytes]:
    """Return the canonical events that a client's user gets from a transcript. The library in C joins no results."""
    lines = [json.loads(line.replace('"tired"', '"other"')) for line in transcript.lines]
    expected = None if client == "c" and transcript.is_whole else transcript.expected
    events = transcript.by_client.get(client) or expected or lines
    return [event_bytes(event["event"], event) for event in events]


def seen_events(
    driver: Sequence[str], worker: Sequence[str], transcripts: Sequence[Transcript]
) -> dict[str, list[bytes]]:
    """Play transcripts to a client, and return the canonical events of each, by the transcript's name.

    Args:
        driver: The client's driver, which prints events.
        worker: The worker that it starts.
        transcripts: The transcripts.
    """
    instructions = [{"do": "start"}]
    instructions += [{"do": "request", "name": each.name, "command": each.command} for each in transcripts]
    seen: defaultdict[str, list[bytes]] = defaultdict(list)
    with subprocess.Popen(
        driver,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "LMWIRE_WORKER_COMMAND": json.dumps(worker)},
    ) as process:
        assert process.stdin and process.stdout
        limit = Timer(SECONDS, process.kill)
        limit.start()
        process.stdin.write(b"".join(json.dumps(each).encode() + b"\n" for each in instructions))
        process.stdin.flush()
        remaining = {each.name for each in transcripts}
        for line in process.stdout:
            report = json.loads(line, parse_int=_integer)
            if report["saw"] == "event":
                seen[report["name"]].append(event_bytes(report["kind"], report["event"]))
            elif report["saw"] in ("done", "failed"):
                remaining.discard(report["name"])
                if not remaining:
                    break
        process.stdin.write(b'{"do":"close"}\n')
        process.stdin.close()
        code = process.wait()
        limit.cancel()
    assert code == 0
    return seen


def _integer(text: str) -> int | float:
    """Return a number without a fraction. Go writes -0.0 as -0."""
    return -0.0 if text == "-0" else int(text)


def _as_float32(number: float) -> float:
    """Return the nearest float32, which all clients' vectors have. Go writes it with fewer digits."""
    return struct.unpack("f", struct.pack("f", number))[0]


def _is_absent(name: str, member: Any) -> bool:
    if name in _IGNORED:
        return True
    return member is None or (name in _DEFAULTS and member == _DEFAULTS[name] and type(member) is type(_DEFAULTS[name]))
