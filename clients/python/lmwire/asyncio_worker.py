"""The worker class for asyncio tasks. Each method does what the method of `Worker` with its name does.

The worker's output is read in the tasks' own event loop.
"""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self, Unpack, cast

from lmwire_protocol import Cache, Cancel, Command, Info, Media, Ping, Quit, Stats, Unload, events

from .attachments import media
from .base_worker import BaseWorker
from .commands import (
    chat_command,
    detokenize_command,
    embed_command,
    generate_command,
    load_command,
    speak_command,
    tokenize_command,
    transcribe_command,
)
from .errors import WorkerLost
from .options import (
    EmbedOptions,
    Inputs,
    LoadOptions,
    MediaDict,
    Messages,
    SpeakOptions,
    TemplateOptions,
    TranscribeOptions,
    UnformattedChatOptions,
    UnformattedPromptOptions,
)
from .output_types import OutputFormat, Parsed, split_format
from .responses.asyncio_stream import AsyncResponseStream, AsyncSpeech, AsyncStream, AsyncTranscript
from .responses.pending_request import OnProgress
from .responses.values import Embeddings, Tokens, assemble_tokens, assemble_vectors
from .transport.event_loop_reader import EventLoopReader


class AsyncWorker(BaseWorker):
    """A worker process for asyncio tasks; `BaseWorker` has the arguments.

    All tasks of one event loop may await its methods at the same time. They are those of `Worker`, with the same
    arguments, results and errors. While the loop is busy, the worker waits, and nothing is lost.
    """

    async def start(self) -> Self:
        """See `Worker.start`."""
        loop = EventLoopReader()
        hello = self._spawn(loop.deliver, loop)
        with self._handshake():
            self.hello = cast(events.HelloDone, await self.request(hello, timeout=self._start_timeout))
        return self

    async def close(self) -> None:
        """See `Worker.close`."""
        if self._started:
            await asyncio.to_thread(self._started.close, self._shutdown_timeouts)

    async def abort(self, reason: WorkerLost) -> None:
        """See `Worker.abort`."""
        if self._started:
            await asyncio.to_thread(self._started.abort, reason, self._shutdown_timeouts)

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        await self.close()

    async def load(
        self,
        path: str,
        *,
        on_progress: OnProgress | None = None,
        timeout: float | None = None,
        **options: Unpack[LoadOptions],
    ) -> events.ModelDone:
        """See `Worker.load`."""
        command = load_command(path, options)
        return cast(events.ModelDone, await self.request(command, on_progress=on_progress, timeout=timeout))

    async def unload(self, *, timeout: float | None = None) -> int:
        """See `Worker.unload`."""
        return cast(events.UnloadDone, await self.request(Unload(), timeout=timeout)).freed_bytes

    def chat(
        self,
        messages: str | Messages,
        *,
        format: OutputFormat[Parsed] = None,
        on_progress: OnProgress | None = None,
        timeout: float | None = None,
        **options: Unpack[UnformattedChatOptions],
    ) -> AsyncStream[Parsed]:
        """See `Worker.chat`."""
        wire_format, output = split_format(format)
        command = chat_command(messages, options, wire_format)
        return AsyncStream(self._connection_for(command), command, timeout, on_progress, output)

    def generate(
        self,
        prompt: str | list[int],
        *,
        format: OutputFormat[Parsed] = None,
        on_progress: OnProgress | None = None,
        timeout: float | None = None,
        **options: Unpack[UnformattedPromptOptions],
    ) -> AsyncStream[Parsed]:
        """See `Worker.generate`."""
        wire_format, output = split_format(format)
        command = generate_command(prompt, options, wire_format)
        return AsyncStream(self._connection_for(command), command, timeout, on_progress, output)

    async def tokenize(
        self,
        prompt: str | Messages,
        *,
        add_special_tokens: bool = True,
        timeout: float | None = None,
        **template: Unpack[TemplateOptions],
    ) -> Tokens:
        """See `Worker.tokenize`."""
        command = tokenize_command(prompt, template, count_only=False, add_special_tokens=add_special_tokens)
        return assemble_tokens(await self.stream(command, timeout=timeout).collect())

    async def detokenize(self, token_ids: Sequence[int], *, timeout: float | None = None) -> str:
        """See `Worker.detokenize`."""
        stream = self.stream(detokenize_command(token_ids), timeout=timeout)
        return assemble_tokens(await stream.collect()).text

    async def count_tokens(
        self, prompt: str | Messages, *, timeout: float | None = None, **template: Unpack[TemplateOptions]
    ) -> int:
        """See `Worker.count_tokens`."""
        command = tokenize_command(prompt, template, count_only=True)
        return cast(events.TokenizeDone, await self.request(command, timeout=timeout)).count

    async def embed(
        self, inputs: Inputs, *, timeout: float | None = None, **options: Unpack[EmbedOptions]
    ) -> Embeddings:
        """See `Worker.embed`."""
        command = embed_command(inputs, options)
        stream: AsyncResponseStream[events.Embedding, events.EmbedDone]
        stream = AsyncResponseStream(self._connection_for(command), command, timeout, None)
        vectors = assemble_vectors(await stream.collect(), stream.result.count)
        return Embeddings(vectors, stream.result.usage)

    def transcribe(
        self,
        audio: str | Path | bytes | Media | MediaDict,
        *,
        on_progress: OnProgress | None = None,
        timeout: float | None = None,
        **options: Unpack[TranscribeOptions],
    ) -> AsyncTranscript:
        """See `Worker.transcribe`."""
        recording = audio if isinstance(audio, (Media, dict)) else media(audio)
        command = transcribe_command(recording, options)
        return AsyncTranscript(self._connection_for(command), command, timeout, on_progress)

    def speak(
        self,
        text: str,
        *,
        on_progress: OnProgress | None = None,
        timeout: float | None = None,
        **options: Unpack[SpeakOptions],
    ) -> AsyncSpeech:
        """See `Worker.speak`."""
        command = speak_command(text, options)
        return AsyncSpeech(self._connection_for(command), command, timeout, on_progress)

    async def clear_cache(self, *, timeout: float | None = None) -> int:
        """See `Worker.clear_cache`."""
        return cast(events.CacheDone, await self.request(Cache(action="clear"), timeout=timeout)).freed_bytes

    async def info(self, *, timeout: float | None = None) -> events.ModelDone:
        """See `Worker.info`."""
        return cast(events.ModelDone, await self.request(Info(), timeout=timeout))

    async def cancel(self, id: str, *, timeout: float | None = None) -> int:
        """See `Worker.cancel`."""
        return cast(events.CancelDone, await self.request(Cancel(target=id), timeout=timeout)).matched

    async def ping(self, *, timeout: float | None = None) -> events.PingDone:
        """See `Worker.ping`."""
        return cast(events.PingDone, await self.request(Ping(), timeout=timeout))

    async def stats(self, *, timeout: float | None = None) -> events.StatsDone:
        """See `Worker.stats`."""
        return cast(events.StatsDone, await self.request(Stats(), timeout=timeout))

    async def quit(self, *, drain: bool = False, timeout: float | None = None) -> None:
        """See `Worker.quit`."""
        await self.request(Quit(drain=drain), timeout=timeout)
        await self.close()

    async def request(
        self, command: Command, *, on_progress: OnProgress | None = None, timeout: float | None = None
    ) -> events.Done:
        """See `Worker.request`."""
        return await self.stream(command, on_progress=on_progress, timeout=timeout).wait()

    def stream(
        self, command: Command, *, on_progress: OnProgress | None = None, timeout: float | None = None
    ) -> AsyncStream:
        """See `Worker.stream`."""
        return AsyncStream(self._connection_for(command), command, timeout, on_progress)
