"""The worker class for threads."""

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
from .responses.pending_request import OnProgress
from .responses.stream import ResponseStream, Speech, Stream, Transcript
from .responses.values import Embeddings, Tokens, assemble_tokens, assemble_vectors
from .transport.connection import deliver_all


class Worker(BaseWorker):
    """A worker process for threads; `BaseWorker` has the arguments. All methods are thread-safe.

    Every `timeout` is the longest time of the whole request, in seconds. After it, the request is cancelled and raises
    RequestTimeout. Every request raises RequestFailed if the worker refuses or fails it, WorkerLost if the worker is
    gone, and UnsupportedByWorker if the worker lacks a feature.

    >>> with lmwire.Worker() as another:
    ...     _ = another.load("builtin:tiny")
    ...     another.chat("Who are you?", max_tokens=3).text()
    'I am the'
    """

    def start(self) -> Self:
        """Spawn the worker and wait for its reply to `hello`, as entering a `with` block does.

        Raises:
            StartFailed: The worker did not start.
        """
        hello = self._spawn(deliver_all)
        with self._handshake():
            self.hello = cast(events.HelloDone, self.request(hello, timeout=self._start_timeout))
        return self

    def close(self) -> None:
        """Cancel all requests, end the worker, and return when its process is gone. Further calls do nothing."""
        if self._started:
            self._started.close(self._shutdown_timeouts)

    def abort(self, reason: WorkerLost) -> None:
        """Fail all requests at once with the given error, kill the worker, and return when its process is gone."""
        if self._started:
            self._started.abort(reason, self._shutdown_timeouts)

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
        """Load a model in place of the current one, and return its description.

        >>> worker.load("builtin:tiny").context_len
        2048

        Args:
            path: A model folder, a hub id (owner/name) or an alias.
            on_progress: Called with each progress event.
            timeout: Longest time, in seconds.
            **options: The other fields of `load`.
        """
        command = load_command(path, options)
        return cast(events.ModelDone, self.request(command, on_progress=on_progress, timeout=timeout))

    def unload(self, *, timeout: float | None = None) -> int:
        """Unload the model, and return the number of bytes that it occupied."""
        return cast(events.UnloadDone, self.request(Unload(), timeout=timeout)).freed_bytes

    def chat(
        self,
        messages: str | Messages,
        *,
        format: OutputFormat[Parsed] = None,
        on_progress: OnProgress | None = None,
        timeout: float | None = None,
        **options: Unpack[UnformattedChatOptions],
    ) -> Stream[Parsed]:
        """Start an answer to a conversation.

        >>> with worker.chat("Who are you?", max_tokens=3) as stream:
        ...     "".join(delta.text for delta in stream)
        'I am the'
        >>> worker.chat([{"role": "user", "content": "Who are you?"}], max_tokens=3).answer().finish_reason
        'length'

        Args:
            messages: The conversation. A string is one message of the user.
            format: Structure of the answer: a type that `answer.parsed` then has, or a format of the protocol.
            on_progress: Called with each progress event.
            timeout: Longest time, in seconds.
            **options: The other fields of `chat`.
        """
        wire_format, output = split_format(format)
        command = chat_command(messages, options, wire_format)
        return Stream(self._connection_for(command), command, timeout, on_progress, output)

    def generate(
        self,
        prompt: str | list[int],
        *,
        format: OutputFormat[Parsed] = None,
        on_progress: OnProgress | None = None,
        timeout: float | None = None,
        **options: Unpack[UnformattedPromptOptions],
    ) -> Stream[Parsed]:
        """Start a continuation of a prompt.

        >>> worker.generate("Once upon a time", max_tokens=2).answer().finish_reason
        'length'

        Args:
            prompt: Text, or token ids.
            format: As in `chat`.
            on_progress: Called with each progress event.
            timeout: Longest time, in seconds.
            **options: The other fields of `generate`.
        """
        wire_format, output = split_format(format)
        command = generate_command(prompt, options, wire_format)
        return Stream(self._connection_for(command), command, timeout, on_progress, output)

    def tokenize(
        self,
        prompt: str | Messages,
        *,
        add_special_tokens: bool = True,
        timeout: float | None = None,
        **template: Unpack[TemplateOptions],
    ) -> Tokens:
        """Return the tokens of a prompt, without generating.

        >>> tokens = worker.tokenize("I am the")
        >>> worker.detokenize(tokens.ids)
        'I am the'

        Args:
            prompt: Text as for `generate`, or a conversation as for `chat`.
            add_special_tokens: Add the tokens that the tokenizer puts around a text. Must be true for a conversation.
            timeout: Longest time, in seconds.
            **template: Fields of `tokenize` that affect a conversation's prompt.
        """
        command = tokenize_command(prompt, template, count_only=False, add_special_tokens=add_special_tokens)
        return assemble_tokens(self.stream(command, timeout=timeout).collect())

    def detokenize(self, token_ids: Sequence[int], *, timeout: float | None = None) -> str:
        """Return the text of tokens, special ones included.

        Args:
            token_ids: The tokens; at least one.
            timeout: Longest time, in seconds.
        """
        return assemble_tokens(self.stream(detokenize_command(token_ids), timeout=timeout).collect()).text

    def count_tokens(
        self, prompt: str | Messages, *, timeout: float | None = None, **template: Unpack[TemplateOptions]
    ) -> int:
        """Return the number of tokens of a prompt; `tokenize` has the arguments."""
        command = tokenize_command(prompt, template, count_only=True)
        return cast(events.TokenizeDone, self.request(command, timeout=timeout)).count

    def embed(self, inputs: Inputs, *, timeout: float | None = None, **options: Unpack[EmbedOptions]) -> Embeddings:
        """Return a vector for each input.

        Args:
            inputs: Texts and images, or tokens of the model's vocabulary.
            timeout: Longest time, in seconds.
            **options: The other fields of `embed`.
        """
        command = embed_command(inputs, options)
        stream: ResponseStream[events.Embedding, events.EmbedDone]
        stream = ResponseStream(self._connection_for(command), command, timeout, None)
        vectors = assemble_vectors(stream.collect(), stream.result.count)
        return Embeddings(vectors, stream.result.usage)

    def transcribe(
        self,
        audio: str | Path | bytes | Media | MediaDict,
        *,
        on_progress: OnProgress | None = None,
        timeout: float | None = None,
        **options: Unpack[TranscribeOptions],
    ) -> Transcript:
        """Start a transcript of a recording.

        Args:
            audio: The path of a file on this machine, whose content is sent; the content of a file; or media that the
                worker reads itself.
            on_progress: Called with each progress event.
            timeout: Longest time, in seconds.
            **options: The other fields of `transcribe`.

        Raises:
            OSError: The file cannot be read.
        """
        recording = audio if isinstance(audio, (Media, dict)) else media(audio)
        command = transcribe_command(recording, options)
        return Transcript(self._connection_for(command), command, timeout, on_progress)

    def speak(
        self,
        text: str,
        *,
        on_progress: OnProgress | None = None,
        timeout: float | None = None,
        **options: Unpack[SpeakOptions],
    ) -> Speech:
        """Start to speak a text.

        Args:
            text: The text.
            on_progress: Called with each progress event.
            timeout: Longest time, in seconds.
            **options: The other fields of `speak`.
        """
        command = speak_command(text, options)
        return Speech(self._connection_for(command), command, timeout, on_progress)

    def clear_cache(self, *, timeout: float | None = None) -> int:
        """Clear the prefix cache, with its pinned entries, and return the number of bytes that it occupied."""
        return cast(events.CacheDone, self.request(Cache(action="clear"), timeout=timeout)).freed_bytes

    def info(self, *, timeout: float | None = None) -> events.ModelDone:
        """Return the description of the loaded model."""
        return cast(events.ModelDone, self.request(Info(), timeout=timeout))

    def cancel(self, id: str, *, timeout: float | None = None) -> int:
        """Cancel a request, and return the number of requests found: 1, or 0 if it has ended.

        >>> stream = worker.chat("Who are you?", ignore_eos=True)
        >>> worker.cancel(stream.id)
        1
        >>> stream.wait().finish_reason
        'cancelled'

        Args:
            id: The request's id; a stream has it.
            timeout: Longest time, in seconds.
        """
        return cast(events.CancelDone, self.request(Cancel(target=id), timeout=timeout)).matched

    def ping(self, *, timeout: float | None = None) -> events.PingDone:
        """Return the worker's state and the age of its last step."""
        return cast(events.PingDone, self.request(Ping(), timeout=timeout))

    def stats(self, *, timeout: float | None = None) -> events.StatsDone:
        """Return the worker's statistics."""
        return cast(events.StatsDone, self.request(Stats(), timeout=timeout))

    def quit(self, *, drain: bool = False, timeout: float | None = None) -> None:
        """End the worker, and return when its process is gone.

        Args:
            drain: Whether to finish the requests in flight first. Otherwise they are cancelled.
            timeout: Longest time until the worker's reply, in seconds.
        """
        self.request(Quit(drain=drain), timeout=timeout)
        self.close()

    def request(
        self, command: Command, *, on_progress: OnProgress | None = None, timeout: float | None = None
    ) -> events.Done:
        """Send any command, wait, and return its `done`. Other events, such as tokens, are dropped.

        Args:
            command: The command. The type of its `done` is `type(command).done`.
            on_progress: Called with each progress event.
            timeout: Longest time, in seconds.
        """
        return self.stream(command, on_progress=on_progress, timeout=timeout).wait()

    def stream(
        self, command: Command, *, on_progress: OnProgress | None = None, timeout: float | None = None
    ) -> Stream:
        """Send any command, and return its response as it arrives.

        Args:
            command: The command.
            on_progress: Called with each progress event.
            timeout: Longest time, in seconds.
        """
        return Stream(self._connection_for(command), command, timeout, on_progress)
