"""The asyncio face: a worker for tasks.

Output is read in the tasks' own event loop; all else of the process is the other face's.
"""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from types import TracebackType
from typing import Generic, Self, TypeVar, Unpack, cast

from lmwire_protocol import Cache, Cancel, Command, Info, Media, Ping, Quit, Stats, Unload, events

from .answer import Answer
from .attachments import media
from .base import BaseWorker, Embeddings, Exchange, OnProgress, Result, Tokens
from .connection import Connection, Delivery
from .errors import WorkerLost
from .event_loop import EventLoop
from .options import (
    ChatOptions,
    EmbedOptions,
    Inputs,
    LoadOptions,
    MediaDict,
    Messages,
    Options,
    TemplateOptions,
    TranscribeOptions,
    chat_command,
    embed_command,
    generate_command,
    load_command,
    tokenize_command,
    transcribe_command,
)
from .pieces import CallPiece, Piece

Item = TypeVar("Item")


class AsyncIncoming(Exchange[Result], Generic[Item, Result]):
    """What a request brings, as it comes: iterate over it. Of one task at a time.

    Leaving the `async with` block early cancels the request, and so does cancelling the task inside it.
    What comes is kept, read or not, as long as this is.
    """

    def __init__(
        self, connection: Connection, command: Command, timeout: float | None, on_progress: OnProgress | None
    ) -> None:
        self._mailbox: asyncio.Queue[Delivery] = asyncio.Queue()
        super().__init__(connection, command, self._mailbox, timeout, on_progress)

    async def __aiter__(self) -> AsyncIterator[Item]:
        """What was not read yet.

        Raises:
            LmwireError: the request failed, after the pieces that came before that.
        """
        while True:
            while self._read < len(self._arrived):
                self._read += 1
                yield self._arrived[self._read - 1]
            if self._ended:
                break
            await self._wait()
        self._outcome()

    async def batch(self) -> list[Item]:
        """What has come and was not read yet, in one list, for those who pass it on in one write; waits for the first.

        It is empty when the request has ended.

        Raises:
            LmwireError: as when iterated over.
        """
        while not (batch := self._unread()) and not self._ended:
            await self._wait()
        if not batch:
            self._outcome()
        return batch

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        self.close()

    async def wait(self) -> events.Done:
        """Reads to the end, drops what comes, and returns the terminal."""
        async with self:
            async for _ in self:
                pass
        return self._outcome()

    def close(self) -> None:
        """Cancels the request if it has not ended. Does not wait."""
        self._leave(RuntimeError("the stream was left before its end"))

    async def _wait(self) -> None:
        """Takes what has come, at least one delivery."""
        self._take(await self._next())
        while not self._mailbox.empty():
            self._take(self._mailbox.get_nowait())

    async def _next(self) -> Delivery:
        if self._deadline is None:  # a timer for each token would cost as much as all else here
            return await self._mailbox.get()
        try:
            async with asyncio.timeout(self._remaining()):
                return await self._mailbox.get()
        except TimeoutError:
            raise self._time_out() from None


class AsyncStream(AsyncIncoming[Piece | CallPiece, events.ResultDone]):
    """An answer as it comes: iterate over its pieces. One task at a time reads a stream.

    Leaving the `async with` block early cancels the request, and so does cancelling the task inside it.
    Pieces that are not read are kept, without a bound.
    """

    async def text(self) -> str:
        """Reads to the end and returns the answer's text not read yet: without thoughts, and of the first answer."""
        async with self:
            return "".join([piece.text async for piece in self if piece.choice == 0])

    async def answer(self) -> Answer:
        """Reads to the end and returns the whole answer, with what was read before; the first of several."""
        return (await self.answers())[0]

    async def answers(self) -> list[Answer]:
        """The same for all answers of a request with `n`."""
        await self.wait()
        return self._answers()


class AsyncTranscript(AsyncIncoming[events.Segment, events.TranscribeDone]):
    """A transcript as it comes: iterate over its segments."""

    async def text(self) -> str:
        """Reads to the end and returns the text not read yet."""
        async with self:
            return "".join([segment.text async for segment in self])


class AsyncWorker(BaseWorker):
    """A worker process; `BaseWorker` has the arguments. Its methods may be awaited by any number of one loop's tasks.

    It is read in that loop: while that is busy for long, the worker waits, and loses nothing.

    Every `timeout` is in seconds, for the whole request; when it has passed, the request is cancelled and
    RequestTimeout raised. Every request raises RequestFailed for the worker's own refusals and failures, and
    WorkerLost when the worker is gone.
    """

    async def start(self) -> Self:
        """Spawns the worker and says hello; `async with` does it.

        Raises:
            StartFailed: no worker came up.
        """
        loop = EventLoop()
        hello = self._spawn(loop.deliver, loop)
        with self._greeting():
            self.hello = cast(events.HelloDone, await self.request(hello, timeout=self._start_timeout))
        return self

    async def close(self) -> None:
        """Ends the worker, cancelling what runs, and returns when its process is gone. Safe to call again."""
        if self._started:
            await asyncio.to_thread(self._started.close, self._patience)

    async def give_up(self, why: WorkerLost) -> None:
        """Fails all requests with `why` at once, ends the worker by force, and returns when its process is gone."""
        if self._started:
            await asyncio.to_thread(self._started.give_up, why, self._patience)

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
        """Loads a model (a folder, a hub id or an alias) in place of the present one."""
        command = load_command(path, options)
        return cast(events.ModelDone, await self.request(command, on_progress=on_progress, timeout=timeout))

    async def unload(self, *, timeout: float | None = None) -> int:
        """Drops the model and returns how many bytes that freed."""
        return cast(events.UnloadDone, await self.request(Unload(), timeout=timeout)).freed_bytes

    def chat(
        self,
        messages: Messages,
        *,
        on_progress: OnProgress | None = None,
        timeout: float | None = None,
        **options: Unpack[ChatOptions],
    ) -> AsyncStream:
        """Starts an answer to a conversation."""
        return self.stream(chat_command(messages, options), on_progress=on_progress, timeout=timeout)

    def generate(
        self,
        prompt: str | list[int],
        *,
        on_progress: OnProgress | None = None,
        timeout: float | None = None,
        **options: Unpack[Options],
    ) -> AsyncStream:
        """Starts to continue a prompt: text, or token ids."""
        return self.stream(generate_command(prompt, options), on_progress=on_progress, timeout=timeout)

    async def tokenize(
        self, prompt: str | Messages, *, timeout: float | None = None, **template: Unpack[TemplateOptions]
    ) -> Tokens:
        """The tokens of a text, as `generate` takes it, or of a conversation, as `chat` does. Generates nothing."""
        stream = self.stream(tokenize_command(prompt, template, count_only=False), timeout=timeout)
        await stream.wait()
        return stream._tokens()

    async def count_tokens(
        self, prompt: str | Messages, *, timeout: float | None = None, **template: Unpack[TemplateOptions]
    ) -> int:
        """How many tokens `tokenize` would return."""
        command = tokenize_command(prompt, template, count_only=True)
        return cast(events.TokenizeDone, await self.request(command, timeout=timeout)).count

    async def embed(
        self, inputs: Inputs, *, timeout: float | None = None, **options: Unpack[EmbedOptions]
    ) -> Embeddings:
        """A vector for each text and each image."""
        incoming = AsyncIncoming(self._serving(command := embed_command(inputs, options)), command, timeout, None)
        await incoming.wait()
        return incoming._embeddings()

    def transcribe(
        self,
        audio: str | Path | bytes | Media | MediaDict,
        *,
        on_progress: OnProgress | None = None,
        timeout: float | None = None,
        **options: Unpack[TranscribeOptions],
    ) -> AsyncTranscript:
        """Starts to write down a recording.

        Args:
            audio: A file of this machine, which is sent along, the content of one, or media that the worker finds.
            on_progress: Called with each progress event.
            timeout: In seconds.
            **options: How to write it down.

        Raises:
            OSError: the file cannot be read.
        """
        found = audio if isinstance(audio, Media | dict) else media(audio)
        command = transcribe_command(found, options)
        return AsyncTranscript(self._serving(command), command, timeout, on_progress)

    async def clear_cache(self, *, timeout: float | None = None) -> int:
        """Drops what is cached of prompts and answers, what is pinned too, and returns how many bytes that freed."""
        return cast(events.CacheDone, await self.request(Cache(action="clear"), timeout=timeout)).freed_bytes

    async def info(self, *, timeout: float | None = None) -> events.ModelDone:
        """What is loaded."""
        return cast(events.ModelDone, await self.request(Info(), timeout=timeout))

    async def cancel(self, id: str, *, timeout: float | None = None) -> int:
        """Cancels a request and returns how many were found: 1, or 0 when it has ended."""
        return cast(events.CancelDone, await self.request(Cancel(target=id), timeout=timeout)).matched

    async def ping(self, *, timeout: float | None = None) -> events.PingDone:
        """Whether the worker lives and makes progress."""
        return cast(events.PingDone, await self.request(Ping(), timeout=timeout))

    async def stats(self, *, timeout: float | None = None) -> events.StatsDone:
        """The worker's counters."""
        return cast(events.StatsDone, await self.request(Stats(), timeout=timeout))

    async def quit(self, *, drain: bool = False, timeout: float | None = None) -> None:
        """Ends the worker; with `drain`, after the requests that run. Returns when its process is gone."""
        await self.request(Quit(drain=drain), timeout=timeout)
        await self.close()

    async def request(
        self, command: Command, *, on_progress: OnProgress | None = None, timeout: float | None = None
    ) -> events.Done:
        """Sends any command and returns its `done`, as the Struct `type(command).done`. Text is dropped."""
        return await AsyncStream(self._serving(command), command, timeout, on_progress).wait()

    def stream(
        self, command: Command, *, on_progress: OnProgress | None = None, timeout: float | None = None
    ) -> AsyncStream:
        """Sends any command and returns its answer as it comes."""
        return AsyncStream(self._serving(command), command, timeout, on_progress)
