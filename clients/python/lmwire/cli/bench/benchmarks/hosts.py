"""`lmwire bench hosts`: speed of the clients in C, Go, Rust and Node, against the one in Python.

A worker replays recorded lines. It writes them faster than any client reads, so the client is what is measured.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from lmwire_protocol import DONE_CMD, FEATURES, encode_event, events

from ...errors import CliError
from ..pairing import Pairs, extra_latency, speed_ratio
from ..programs import replay_worker
from ..programs.host_programs import PYTHON, built_hosts
from ..results import Result

_STREAMS: Final = 32
_EXTRA_MS: Final = 50.0
"""Time that a first token may come later than with Python: less than a person notices."""
_WORDS: Final = ("one ", "two ", "three ", "four ")


class HostRates(NamedTuple):
    """Rates that a client's program has measured."""

    events_s: float
    """Events a second of all streams together, from the first request to the last end."""
    starts_s: float
    """Starts a second: a start lasts from the spawn of the worker to the first token."""


def measure(_: Path | None, tokens: int, rounds: int) -> Iterator[Result]:
    """Measure each client and the Python client in turns."""
    with tempfile.TemporaryDirectory() as folder:
        worker = [sys.executable, "-S", str(Path(replay_worker.__file__)), str(record(Path(folder), tokens))]
        expected = _STREAMS * _turns(tokens) * len(_WORDS)
        for host in built_hosts():
            programs = PYTHON, host.command
            turns = [[_run(program, worker, expected) for program in programs] for _ in range(1 + rounds)][1:]
            bursts: Pairs = [(python.events_s, other.events_s) for python, other in turns]
            starts: Pairs = [(python.starts_s, other.starts_s) for python, other in turns]
            yield speed_ratio(f"{host.language}: events of {_STREAMS} streams", bursts, host.target, "events/s")
            yield extra_latency(f"{host.language}: spawn to first token", starts, _EXTRA_MS, "with Python")


def _run(program: Sequence[str], worker: Sequence[str], expected: int) -> HostRates:
    result = subprocess.run([*program, str(_STREAMS), *worker], check=False, stdout=subprocess.PIPE)
    if result.returncode:
        raise CliError(f"{program[-1]} failed; its errors are above")
    seen = json.loads(result.stdout)
    if seen["events"] != expected:
        raise CliError(f"{program[-1]} received {seen['events']} events of {expected}")
    return HostRates(seen["events"] / seen["seconds"], 1e3 / seen["first_token_ms"])


def record(folder: Path, tokens: int) -> Path:
    """Write the lines that the worker replays to 32 streams, and return their file.

    Args:
        folder: Gets the file.
        tokens: Length of each stream, in tokens.
    """
    served = [name for name in FEATURES if name != DONE_CMD]  # any command's `done` is the same
    limits = events.Limits(line_in_bytes=1 << 25, line_out_bytes=61440, requests=1024, queued_bytes=1 << 28)
    hello = events.HelloDone(
        id="$ID", protocol=1, worker="replay", pid=1, engines=["replay"], features=served, limits=limits
    )
    model = events.ModelDone(
        id="$ID",
        path="mock",
        model_type="mock",
        vocab_size=512,
        layers=2,
        hidden_size=64,
        context_len=4096,
        weights_bytes=1024,
        capabilities=["generate"],
    )
    words = [events.Token(id="$ID", token=word, token_ids=[place]) for place, word in enumerate(_WORDS)]
    end = events.ResultDone(
        id="$ID",
        finish_reason="length",
        seed=1,
        usage=events.Usage(prompt_tokens=1, cached_tokens=0, completion_tokens=tokens),
        timings=events.Timings(queued_ms=0.1, total_ms=1.0),
    )
    recordings = [
        _recording("hello", [hello]),
        _recording("mock", [model]),
        _recording("first", [words[0], end]),
        _recording("burst", [*words, end], times=_turns(tokens), together=_STREAMS),
    ]
    file = folder / "recording.jsonl"
    file.write_text("".join(json.dumps(each) + "\n" for each in recordings), encoding="utf-8")
    return file


def _turns(tokens: int) -> int:
    """Return how often the words are repeated for a stream of at least this many tokens."""
    return -(-tokens // len(_WORDS))


def _recording(to: str, lines: Sequence[events.Event], **more: int) -> dict[str, Any]:
    return {"to": to, "lines": [encode_event(line).decode().strip() for line in lines], **more}
