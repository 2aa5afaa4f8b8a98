"""Vectors, transcripts and speeches: the host joins their parts."""

from array import array
from base64 import b64encode
from sys import byteorder
from typing import Any

from .. import wire
from ..context import CaseContext
from .registry import case, variants

_INPUT = [{"type": "text", "text": text} for text in ("the sea", "the ocean")]
_AUDIO: dict[str, Any] = {"audio": {"path": "/recordings/note.wav"}}


def _base64(kind: str, values: list[Any]) -> str:
    numbers = array(kind, values)
    if byteorder == "big":
        numbers.byteswap()
    return b64encode(numbers.tobytes()).decode()


@variants({"base64": "base64", "float": "float"}, "X-1", "X-2")
def joins_the_parts_of_a_vector(context: CaseContext, encoding: str) -> None:
    """Join the parts of each vector. Vectors come in any order, and their parts interleave."""
    worker = context.start()
    vectors = {0: [0.5, -0.25, 2.0, -0.0], 1: [1.0, 0.0, -8.5, 0.125]}
    id = context.request("a", "embed", input=_INPUT, encoding=encoding).id
    for index, start, end in ((1, 0, 3), (0, 0, 1), (1, 3, 4), (0, 1, 4)):
        part = vectors[index][start:end]
        written = _base64("f", part) if encoding == "base64" else part
        worker.write(wire.embedding(id, index, 4, written, offset=start or None))
    worker.write(wire.embed_done(id, 2, 4))
    context.driver.expect_done("a", finish_reason=None)
    context.driver.expect_values("a", vectors, [])


@case("Y-1")
def joins_the_segments_of_a_transcript(context: CaseContext) -> None:
    """Join the texts of the segments, with nothing between them."""
    worker = context.start()
    id = context.request("a", "transcribe", **_AUDIO).id
    word = {"text": " milk", "start_s": 0, "end_s": 0.5, "new": 1}
    worker.write(wire.progress(id, "transcribe", "seconds"), wire.segment(id, 0, " Buy milk", words=[word]))
    worker.write(wire.segment(id, 1, ""), wire.segment(id, 2, ", 漢字.", words=None), wire.transcribe_done(id))
    context.driver.expect_done("a", text=" Buy milk, 漢字.", finish_reason=None)


@case("Y-2")
def joins_the_parts_of_a_speech(context: CaseContext) -> None:
    """Join the samples of the parts."""
    worker = context.start()
    id = context.request("a", "speak", text="Buy milk.").id
    worker.write(wire.audio(id, 0, _base64("h", [0, 1, -1])), wire.audio(id, 1, ""))
    worker.write(wire.audio(id, 2, _base64("h", [32767, -32768])), wire.speak_done(id))
    context.driver.expect_done("a", finish_reason=None)
    context.driver.expect_values("a", {}, [0, 1, -1, 32767, -32768])


_EMPTY: dict[str, tuple[dict[str, Any], Any]] = {
    "transcribe": (_AUDIO, wire.transcribe_done),
    "speak": ({"text": "Buy milk."}, wire.speak_done),
}


@variants({command: command for command in _EMPTY}, "Y-1", "Y-2")
def accepts_a_result_without_parts(context: CaseContext, command: str) -> None:
    """Accept the end of a request whose time was over before its first event."""
    fields, done = _EMPTY[command]
    worker = context.start()
    worker.write(done(context.request("a", command, **fields, timeout_ms=1).id, "timeout"))
    context.driver.expect_done("a", finish_reason=None)


@case("C-3")
def fails_a_cancelled_embed(context: CaseContext) -> None:
    """Report `cancelled`, although vectors came before."""
    worker = context.start()
    id = context.request("a", "embed", input=_INPUT).id
    worker.write(wire.embedding(id, 0, 1, _base64("f", [1.0])))
    context.driver.cancel("a")
    cancel = worker.expect("cancel")
    worker.write(wire.cancel_done(cancel.id, 1), wire.error(id, "cancelled"))
    context.driver.expect_failed("a", "cancelled")
