"""A version 1 session: it answers some commands itself and passes the others to the engine."""

import base64
import math
import os
from collections.abc import Callable, Sequence
from typing import Protocol

import msgspec

from lmwire_protocol import (
    Cancel,
    Command,
    Embed,
    Hello,
    Line,
    Ping,
    Quit,
    RequestError,
    Stats,
    __version__,
    decode_command,
    encode_calls,
    encode_embedding,
    encode_event,
    encode_prompt_logprobs,
    limits,
    recover_id,
    usable_id,
)
from lmwire_protocol.events import (
    Audio,
    CacheStats,
    Done,
    Error,
    HelloDone,
    Limits,
    MemoryStats,
    Progress,
    RankGroup,
    SamplingDefaults,
    Segment,
    StatsDone,
    Token,
    TokenStats,
    ToolCall,
)

from ..engine.interface import (
    EmbeddingOutput,
    OutputEvent,
    SpeechOutput,
    TokenDelta,
    ToolCallDelta,
    TranscriptSegment,
)
from ..process.process_tree import is_ancestor
from ..process.stderr_log import Log
from .lifecycle import LifecycleMonitor
from .output_queue import OutputQueue
from .request_registry import RequestRegistry
from .request_state import Request, SpeechState, TranscriptionState

_SAMPLING_FIELDS = frozenset(SamplingDefaults.__struct_fields__)


class EngineStatistics(Protocol):
    """The figures of the engine that `stats` reports. May be read from any thread."""

    tokens: TokenStats
    """Tokens prefilled and generated since the start."""

    def memory(self) -> MemoryStats:
        """Return the model library's memory."""
        ...

    def cache(self) -> CacheStats | None:
        """Return the statistics of the prefix cache; None without a model or a cache."""
        ...


class EventWriterV1:
    """Writes events as PROTOCOL.md describes them. The output queue merges tokens when the host is slow."""

    is_serial = False
    plain_text = False

    def write(self, output: OutputQueue, request: Request, event: OutputEvent) -> None:
        """Queue the event that version 1 has for a runner's event."""
        if isinstance(event, TokenDelta):
            if event.prompt_logprobs:
                output.put_stream(encode_prompt_logprobs(request.id, event.prompt_logprobs))
            if event.text or event.token_ids:
                token = Token(
                    id=request.id,
                    token=event.text,
                    token_ids=event.token_ids,
                    choice=event.choice,
                    channel=event.channel,
                    call=event.is_call_text,
                    logprobs=event.logprobs,
                )
                output.put_tokens(token)
        elif isinstance(event, ToolCallDelta):
            output.put_tool_call(request.id, encode_calls(_tool_call(request, event)))
        elif isinstance(event, EmbeddingOutput):
            as_numbers = isinstance(request.command, Embed) and request.command.encoding == "float"
            output.put_stream(encode_embedding(request.id, event.index, event.vector, numbers=as_numbers))
        elif isinstance(event, TranscriptSegment):
            output.put_stream(encode_event(_segment(request, event)))
        elif isinstance(event, SpeechOutput) and event.samples:
            output.put_stream(encode_event(_audio(request, event)))

    def progress(self, event: Progress) -> bytes:
        """Return the line of a progress event."""
        return encode_event(event)

    def terminal(self, request: Request, event: Done | Error) -> bytes:
        """Return the request's last line. A `done` names its command."""
        if isinstance(event, Done):
            event.cmd = request.command.name
        return encode_event(event)


def _tool_call(request: Request, delta: ToolCallDelta) -> ToolCall:
    return ToolCall(
        id=request.id,
        choice=delta.choice,
        index=delta.index,
        call_id=delta.call_id,
        name=delta.name,
        arguments=delta.arguments,
        complete=delta.complete,
    )


def _segment(request: Request, segment: TranscriptSegment) -> Segment:
    assert isinstance(request.state, TranscriptionState)
    return Segment(
        id=request.id,
        index=request.state.segments - 1,  # it is counted already
        start_s=segment.start_s,
        end_s=segment.end_s,
        text=segment.text,
        words=segment.words,
    )


def _audio(request: Request, part: SpeechOutput) -> Audio:
    assert isinstance(request.state, SpeechState)
    return Audio(
        id=request.id,
        index=request.state.parts - 1,  # it is counted already
        sample_rate=part.sample_rate,
        audio=base64.b64encode(part.samples).decode(),
    )


EVENT_WRITER = EventWriterV1()


class Session:
    """Serves the lines of a host that gives each request an id.

    Args:
        registry: The requests in flight.
        output: The queue of output.
        scheduler: Reports tokens, memory and cache.
        monitor: Watches the host, its quit and the deadlines.
        engines: The model libraries of this installation, for hello.
        features: Features beyond protocol 1.0, for hello.
        log: Receives the host's name.
        on_refused: Called after a hello without a common version, to end the process.
        ranks: The processes that hold each model together, for hello; None if this one does.
    """

    def __init__(
        self,
        registry: RequestRegistry,
        output: OutputQueue,
        scheduler: EngineStatistics,
        monitor: LifecycleMonitor,
        engines: list[str],
        features: Sequence[str],
        log: Log,
        on_refused: Callable[[], None],
        ranks: RankGroup | None = None,
    ) -> None:
        self._registry = registry
        self._output = output
        self._scheduler = scheduler
        self._monitor = monitor
        self._engines = engines
        self._features = features
        self._log = log
        self._on_refused = on_refused
        self._ranks = ranks
        self._started_at = registry.clock()

    def refuse(self, line: Line, error: RequestError) -> None:
        """Answer a line that does not hold an object.

        Args:
            line: The line.
            error: The reason.
        """
        self._registry.refuse(error, recover_id(line.data))

    def serve(self, fields: dict[str, object], line_bytes: int) -> None:
        """Answer an object, or pass it to the engine.

        Args:
            fields: The object.
            line_bytes: Size of its line.
        """
        id = fields.get("id")
        if not isinstance(id, str) or not usable_id(id):
            need = f"a string of 1 to {limits.ID_BYTES} bytes, different from all ids in flight"
            self._registry.refuse(RequestError("invalid_request", f"`id` must be {need}", field="id"), None)
            return
        try:
            self._dispatch(id, decode_command(fields), line_bytes, fields)
        except RequestError as error:
            self._registry.refuse(error, id)

    def _dispatch(self, id: str, command: Command, line_bytes: int, fields: dict[str, object]) -> None:
        match command:
            case Hello():
                self._hello(id, command)
            case Ping():
                self._registry.reply(id, encode_event(self._registry.ping_reply(id)))
            case Stats():
                self._registry.reply(id, encode_event(self._stats(id)))
            case Cancel():
                self._registry.cancel(id, command.target)
            case Quit():
                self._registry.quit(
                    Request(id, command, EVENT_WRITER, line_bytes, self._registry.clock), drain=command.drain
                )
                if not command.drain:
                    self._monitor.start_quit_timeout()
            case _:
                request = Request(id, command, EVENT_WRITER, line_bytes, self._registry.clock)
                request.silent = _SAMPLING_FIELDS.difference(fields)
                self._registry.accept(request)
                if request.deadline < math.inf:
                    self._monitor.deadlines_changed()

    def _hello(self, id: str, hello: Hello) -> None:
        low, high = hello.protocol
        if not low <= limits.PROTOCOL_VERSION <= high:
            ours = f"this worker speaks version {limits.PROTOCOL_VERSION}, the host {low} to {high}"
            error = RequestError("unsupported_protocol", f"no common protocol version: {ours}", field="protocol")
            self._registry.refuse(error, id, protocols=[limits.PROTOCOL_VERSION])
            self._on_refused()
            return
        if hello.host_pid is not None and not is_ancestor(hello.host_pid):
            raise RequestError(
                "invalid_request",
                f"`host_pid`: process {hello.host_pid} is not an ancestor of this worker ({os.getpid()});"
                " leave it out when the worker runs on another machine or in a container",
                field="host_pid",
            )
        self._registry.reply(id, encode_event(self._hello_reply(id)))
        if hello.client:
            self._log(f"the host is {hello.client!r}")
        if hello.host_pid is not None:
            self._monitor.exit_with_host(hello.host_pid)

    def _hello_reply(self, id: str) -> HelloDone:
        return HelloDone(
            id=id,
            cmd=Hello.name,
            protocol=limits.PROTOCOL_VERSION,
            worker=f"lmwire {__version__}",
            pid=os.getpid(),
            engines=self._engines,
            features=list(self._features),
            limits=Limits(
                line_in_bytes=limits.LINE_IN_BYTES,
                line_out_bytes=limits.LINE_OUT_BYTES,
                requests=limits.REQUESTS,
                queued_bytes=limits.QUEUED_BYTES,
            ),
            ranks=self._ranks,
        )

    def _stats(self, id: str) -> StatsDone:
        return StatsDone(
            id=id,
            cmd=Stats.name,
            uptime_ms=round((self._registry.clock() - self._started_at) * 1000, 3),
            requests=self._registry.counts(),
            tokens=msgspec.structs.replace(self._scheduler.tokens),
            memory=self._scheduler.memory(),
            outbox_bytes=self._output.waiting_bytes,
            cache=self._scheduler.cache(),
        )
