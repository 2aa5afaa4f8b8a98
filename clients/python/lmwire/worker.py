"""The synchronous face: a worker for threads."""

from collections.abc import Iterator
from pathlib import Path
from queue import Empty, SimpleQueue
from types import TracebackType
from typing import Generic, Self, TypeVar, Unpack, cast

from lmwire_protocol import Cache, Cancel, Command, Info, Media, Ping, Quit, Stats, Unload, events

from .answer import Answer
from .attachments import media
from .base import BaseWorker, Embeddings, Exchange, OnProgress, Result, Tokens
from .connection import Connection, Delivery, put
from .errors import WorkerLost
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


class Incoming(Exchange[Result], Generic[Item, Result]):
    """What a request brings, as it comes: iterate over it. Of one thread at a time.

    Leaving the `with` block early cancels the request. What comes is kept, read or not, as long as this is.
    """

    def __init__(
        self, connection: Connection, command: Command, timeout: float | None, on_progress: OnProgress | None
    ) -> None:
        self._mailbox: SimpleQueue[Delivery] = SimpleQueue()
        super().__init__(connection, command, self._mailbox, timeout, on_progress)

    def __iter__(self) -> Iterator[Item]:
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
            self._wait()
        self._outcome()

    def batch(self) -> list[Item]:
        """What has come and was not read yet, in one list, for those who pass it on in one write; waits for the first.

        It is empty when the request has ended.

        Raises:
            LmwireError: as when iterated over.
        """
        while not (batch := self._unread()) and not self._ended:
            self._wait()
        if not batch:
            self._outcome()
        return batch

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self.close()

    def wait(self) -> events.Done:
        """Reads to the end, drops what comes, and returns the terminal."""
        with self:
            for _ in self:
                pass
        return self._outcome()

    def close(self) -> None:
        """Cancels the request if it has not ended. Does not wait."""
        self._leave(RuntimeError("the stream was left before its end"))

    def _wait(self) -> None:
        """Takes what has come, at least one delivery."""
        self._take(self._next())
        while not self._mailbox.empty():
            self._take(self._mailbox.get())

    def _next(self) -> Delivery:
        try:
            return self._mailbox.get(timeout=self._remaining())
        except Empty:
            raise self._time_out() from None


class Stream(Incoming[Piece | CallPiece, events.ResultDone]):
    """An answer as it comes: iterate over its pieces. One thread at a time reads a stream.

    Leaving the `with` block early cancels the request. Pieces that are not read are kept, without a bound.
    """

    def text(self) -> str:
        """Reads to the end and returns the answer's text not read yet: without thoughts, and of the first answer."""
        with self:
            return "".join(piece.text for piece in self if piece.choice == 0)

    def answer(self) -> Answer:
        """Reads to the end and returns the whole answer, with what was read before; the first of several."""
        return self.answers()[0]

    def answers(self) -> list[Answer]:
        """The same for all answers of a request with `n`."""
        self.wait()
        return self._answers()


class Transcript(Incoming[events.Segment, events.TranscribeDone]):
    """A transcript as it comes: iterate over its segments."""

    def text(self) -> str:
        """Reads to the end and returns the text not read yet."""
        with self:
            return "".join(segment.text for segment in self)


class Worker(BaseWorker):
    """A worker process; `BaseWorker` has the arguments. Its methods may be called from any number of threads at once.

    Every `timeout` is in seconds, for the whole request; when it has passed, the request is cancelled and
    RequestTimeout raised. Every request raises RequestFailed for the worker's own refusals and failures, and
    WorkerLost when the worker is gone.
    """

    def start(self) -> Self:
        """Spawns the worker and says hello; `with` does it.

        Raises:
            StartFailed: no worker came up.
        """
        hello = self._spawn(put)
        with self._greeting():
            self.hello = cast(events.HelloDone, self.request(hello, timeout=self._start_timeout))
        return self

    def close(self) -> None:
        """Ends the worker, cancelling what runs, and returns when its process is gone. Safe to call again."""
        if self._started:
            self._started.close(self._patience)

    def give_up(self, why: WorkerLost) -> None:
        """Fails all requests with `why` at once, ends the worker by force, and returns when its process is gone."""
        if self._started:
            self._started.give_up(why, self._patience)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self.close()

    def load(
        self,
        path: str,
        *,
        on_progress: OnProgress | None = None,
        timeout: float | None = None,
        **options: Unpack[LoadOptions],
    ) -> events.ModelDone:
        """Loads a model (a folder, a hub id or an alias) in place of the present one."""
        command = load_command(path, options)
        return cast(events.ModelDone, self.request(command, on_progress=on_progress, timeout=timeout))

    def unload(self, *, timeout: float | None = None) -> int:
        """Drops the model and returns how many bytes that freed."""
        return cast(events.UnloadDone, self.request(Unload(), timeout=timeout)).freed_bytes

    def chat(
        self,
        messages: Messages,
        *,
        on_progress: OnProgress | None = None,
        timeout: float | None = None,
        **options: Unpack[ChatOptions],
    ) -> Stream:
        """Starts an answer to a conversation."""
        return self.stream(chat_command(messages, options), on_progress=on_progress, timeout=timeout)

    def generate(
        self,
        prompt: str | list[int],
        *,
        on_progress: OnProgress | None = None,
        timeout: float | None = None,
        **options: Unpack[Options],
    ) -> Stream:
        """Starts to continue a prompt: text, or token ids."""
        return self.stream(generate_command(prompt, options), on_progress=on_progress, timeout=timeout)

    def tokenize(
        self, prompt: str | Messages, *, timeout: float | None = None, **template: Unpack[TemplateOptions]
    ) -> Tokens:
        """The tokens of a text, as `generate` takes it, or of a conversation, as `chat` does. Generates nothing."""
        stream = self.stream(tokenize_command(prompt, template, count_only=False), timeout=timeout)
        stream.wait()
        return stream._tokens()

    def count_tokens(
        self, prompt: str | Messages, *, timeout: float | None = None, **template: Unpack[TemplateOptions]
    ) -> int:
        """How many tokens `tokenize` would return."""
        command = tokenize_command(prompt, template, count_only=True)
        return cast(events.TokenizeDone, self.request(command, timeout=timeout)).count

    def embed(self, inputs: Inputs, *, timeout: float | None = None, **options: Unpack[EmbedOptions]) -> Embeddings:
        """A vector for each text and each image."""
        incoming = Incoming(self._serving(command := embed_command(inputs, options)), command, timeout, None)
        incoming.wait()
        return incoming._embeddings()

    def transcribe(
        self,
        audio: str | Path | bytes | Media | MediaDict,
        *,
        on_progress: OnProgress | None = None,
        timeout: float | None = None,
        **options: Unpack[TranscribeOptions],
    ) -> Transcript:
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
        return Transcript(self._serving(command), command, timeout, on_progress)

    def clear_cache(self, *, timeout: float | None = None) -> int:
        """Drops what is cached of prompts and answers, what is pinned too, and returns how many bytes that freed."""
        return cast(events.CacheDone, self.request(Cache(action="clear"), timeout=timeout)).freed_bytes

    def info(self, *, timeout: float | None = None) -> events.ModelDone:
        """What is loaded."""
        return cast(events.ModelDone, self.request(Info(), timeout=timeout))

    def cancel(self, id: str, *, timeout: float | None = None) -> int:
        """Cancels a request and returns how many were found: 1, or 0 when it has ended."""
        return cast(events.CancelDone, self.request(Cancel(target=id), timeout=timeout)).matched

    def ping(self, *, timeout: float | None = None) -> events.PingDone:
        """Whether the worker lives and makes progress."""
        return cast(events.PingDone, self.request(Ping(), timeout=timeout))

    def stats(self, *, timeout: float | None = None) -> events.StatsDone:
        """The worker's counters."""
        return cast(events.StatsDone, self.request(Stats(), timeout=timeout))

    def quit(self, *, drain: bool = False, timeout: float | None = None) -> None:
        """Ends the worker; with `drain`, after the requests that run. Returns when its process is gone."""
        self.request(Quit(drain=drain), timeout=timeout)
        self.close()

    def request(
        self, command: Command, *, on_progress: OnProgress | None = None, timeout: float | None = None
    ) -> events.Done:
        """Sends any command and returns its `done`, as the Struct `type(command).done`. Text is dropped."""
        return Stream(self._serving(command), command, timeout, on_progress).wait()

    def stream(
        self, command: Command, *, on_progress: OnProgress | None = None, timeout: float | None = None
    ) -> Stream:
        """Sends any command and returns its answer as it comes."""
        return Stream(self._serving(command), command, timeout, on_progress)
