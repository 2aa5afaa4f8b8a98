"""Chat completions of models that write down speech: the answer to a sound is its transcript."""

from collections.abc import AsyncIterator
from typing import Final

from lmwire_protocol import events

from ...errors import invalid_field
from ...http.context import RequestContext
from ...http.endpoint import Json, Streamable
from ...http.sse import WaitingEvent
from ...inference.generation import finish_reason, lease_worker
from ...inference.media import check_new_media, new_media
from ..messages import wire_messages
from ..request_fields import usage_chunk, usage_so_far, wire_format
from ..response_fields import new_identity, total_usage
from .request import ChatRequest
from .response import AssistantMessage, ChatChoice, ChatCompletion
from .stream import ChatStreamEncoder

_SEPARATOR: Final = "\n"
_NO_USAGE: Final = events.Usage(prompt_tokens=0, cached_tokens=0, completion_tokens=0)
_NO_RESULT: Final = events.ResultDone(
    id="", finish_reason="stop", seed=0, usage=_NO_USAGE, timings=events.Timings(queued_ms=0.0, total_ms=0.0)
)
"""Speech models report no tokens."""


async def writes_down_speech(context: RequestContext, body: ChatRequest) -> bool:
    """Return whether a request has new sounds, and its model transcribes and does not chat. Load the model if so.

    Args:
        context: The request's context.
        body: The request's body.

    Raises:
        ApiError: The request is invalid, or the model cannot be loaded.
    """
    if not await context.beside_loop(_has_new_sounds, body):
        return False
    async with lease_worker(context, body.model, rename=lambda field: field) as lease:
        return "transcribe" in lease.model.capabilities and "chat" not in lease.model.capabilities


class TranscriptCompletion(Streamable[ChatRequest]):
    """The transcripts of a request's new sounds. Its text and its generation parameters have no effect."""

    def __init__(self, context: RequestContext, body: ChatRequest) -> None:
        super().__init__(context, body)
        messages = wire_messages(body.messages)
        check_new_media(messages, ("sounds",), lambda field: field)
        _check(body)
        self._sounds = [(path, part["media"]) for path, part in new_media(messages)]
        self._identity = new_identity("chatcmpl", body.model, context.state.settings)
        so_far = usage_so_far(body)
        if so_far:
            so_far.note_end(0, _NO_USAGE)
        usage = usage_chunk(body, context.state.settings)
        self._encoder = ChatStreamEncoder(self._identity, usage=usage, so_far=so_far)
        self.waiting = WaitingEvent(lambda: self._encoder.waiting(None))

    async def whole(self) -> Json:
        """Return the whole chat completion."""
        text = "".join([text async for text in self._texts()])
        choice = ChatChoice(index=0, message=AssistantMessage(content=text), logprobs=None, finish_reason="stop")
        completion = ChatCompletion(**self._identity._asdict(), choices=[choice], usage=total_usage(_NO_RESULT))
        return Json(completion)

    async def frames(self) -> AsyncIterator[bytes]:
        """Yield the chat completion's chunks, one for each segment, as they come."""
        async for text in self._texts():
            yield self._encoder.text(text)
        yield self._encoder.end(_NO_RESULT)

    async def _texts(self) -> AsyncIterator[str]:
        for number, (path, sound) in enumerate(self._sounds):
            is_first = True
            async with (
                lease_worker(
                    self._context, self._body.model, rename=lambda _, path=path: path, has_media=True
                ) as lease,
                lease.worker.transcribe(sound, on_progress=lambda _, lease=lease: lease.media_decoded()) as transcript,
            ):
                transcript.when_ended(lease.release)
                async for segment in transcript:
                    yield (_SEPARATOR if number else "") + segment.text.lstrip() if is_first else segment.text
                    is_first = False
                finish_reason(transcript.result.finish_reason)


def _has_new_sounds(body: ChatRequest) -> bool:
    return any(part["type"] == "audio" for _, part in new_media(wire_messages(body.messages)))


def _check(body: ChatRequest) -> None:
    if (body.n or 1) > 1:
        raise invalid_field("n: this model writes down speech, and a transcript is one answer", "n")
    has_format = body.response_format is not None and wire_format(body.response_format) is not None
    for name, is_given in (("format", body.format is not None), ("response_format", has_format)):
        if is_given:
            raise invalid_field(f"{name}: this model writes down speech, and a transcript is plain text", name)
