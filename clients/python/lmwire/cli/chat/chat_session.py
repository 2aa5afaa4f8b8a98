"""A conversation with a worker: its messages so far, and the next answer."""

import signal
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

import lmwire
from lmwire.options import MediaPartDict, TextPartDict
from lmwire.responses.answer import assemble_answer
from lmwire.transport.child import Spawn, spawn_process
from lmwire.worker import Worker
from lmwire_protocol.events import Progress, ResultDone

from ..progress import show_progress
from .plain_display import PlainDisplay, choose_display

if TYPE_CHECKING:
    from lmwire.mcp import McpServerConfig

    from .mcp_tools import McpTools

MAX_ROUNDS: Final = 25
"""Most answers in a row that call tools, if nobody can be asked."""


class Stopped(Exception):
    """The person stopped the answer, and the worker has cancelled it."""


class ChatReply(NamedTuple):
    """An answer whose text has been shown."""

    calls: list[lmwire.ToolCall]
    """Tool calls. The next messages to send are their results."""
    result: ResultDone


class ChatSession:
    """The worker and the messages of a conversation. Entering its context starts the worker, and exiting ends it.

    Ctrl-C cancels the answer in the worker. Another one, before the answer has ended here, quits.

    Args:
        command: The command that runs the worker. None runs one on this machine.
        system: The system message.
        fields: The fields that every request has besides its messages.
        spawn: Starts the command.
        servers: MCP servers, whose tools the model may call.
        allowed_tools: Names of servers and tools whose calls need no question.
    """

    def __init__(
        self,
        command: Sequence[str] | None,
        system: str | None,
        fields: dict[str, Any],
        spawn: Spawn = spawn_process,
        servers: Sequence["McpServerConfig"] = (),
        allowed_tools: Sequence[str] = (),
    ) -> None:
        self._worker = Worker(command, spawn=spawn)
        self.fields = fields
        self.model = ""
        self.context_len: int | None = None
        self._load_options: dict[str, Any] = {}
        self._system: list[lmwire.MessageDict] = []
        self._messages: list[lmwire.MessageDict] = []
        self._attachments: list[MediaPartDict | TextPartDict] = []
        self.set_system(system or "")
        self.mcp_tools = self._make_tools(servers, allowed_tools) if servers else None
        """Tools of MCP servers; None without servers."""

    def __enter__(self) -> Self:
        self._worker.start()
        if self.mcp_tools:
            self.fields["tools"] = [*self.fields.get("tools", ()), *self.mcp_tools.start()]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if self.mcp_tools:
                self.mcp_tools.close()
        finally:
            self._worker.close()

    def load(self, model: str, options: dict[str, Any]) -> None:
        """Load the model, and show the progress on stderr.

        Args:
            model: A folder, a hub id or an alias.
            options: The other fields of the load.
        """
        with show_progress() as progress:

            def show(event: Progress) -> None:
                progress.show(event.stage, event.current, event.total, event.unit)

            loaded = self._worker.load(model, on_progress=show, **options)
        self.model, self.context_len, self._load_options = model, loaded.context_len, options

    def switch_model(self, name: str) -> None:
        """Load another model with the same options, and keep the conversation. An adapter and a draft do not stay.

        Args:
            name: A folder, a hub id or an alias.

        Raises:
            RequestFailed: It cannot be loaded.
        """
        own = ("adapter_path", "draft_path", "context_len")
        self.load(name, {key: value for key, value in self._load_options.items() if key not in own})

    @property
    def messages(self) -> list[lmwire.MessageDict]:
        """The conversation so far, with the system message."""
        return [*self._messages]

    @messages.setter
    def messages(self, messages: list[lmwire.MessageDict]) -> None:
        self._system = [message for message in messages[:1] if message.get("role") == "system"]
        self._messages = [*messages]

    def set_system(self, text: str) -> None:
        """Replace the system message.

        Args:
            text: The message; an empty one removes it.
        """
        rest = self._messages[len(self._system) :]
        self._system = [{"role": "system", "content": text}] if text else []
        self._messages = [*self._system, *rest]

    def send_prompt(self, prompt: str) -> ChatReply:
        """Send a prompt, show the answer, and add both to the conversation.

        Raises:
            Stopped: The answer was stopped. Its text so far is part of the conversation.
            RequestFailed: The worker refused the request. The conversation is unchanged.
        """
        return self.send([self.user_message(prompt)])

    def answer_once(self, prompt: str) -> ResultDone:
        """Answer a prompt without a person, after the calls of MCP tools that are allowed; see `send_prompt`.

        Returns the last result.
        """
        reply = self.send_prompt(prompt)
        tools = self.mcp_tools
        for _ in range(MAX_ROUNDS):
            if not (tools and reply.calls and all(tools.has(call.name) for call in reply.calls)):
                break
            reply = self.send([call.result(tools.answer(call, None)) for call in reply.calls])
        return reply.result

    def attach(self, part: MediaPartDict | TextPartDict) -> None:
        """Attach an image, for example, to the next prompt."""
        self._attachments.append(part)

    def user_message(self, text: str) -> lmwire.MessageDict:
        """Return a user message with the attachments, which are then no longer attached."""
        parts, self._attachments = self._attachments, []
        return {"role": "user", "content": [*parts, {"type": "text", "text": text}] if parts else text}

    def send(self, turn: Sequence[lmwire.MessageDict]) -> ChatReply:
        """Send messages as `send_prompt` sends one, for example the results of tool calls."""
        messages = [*self._messages, *turn]
        deltas: list[lmwire.TokenDelta | lmwire.ToolCallDelta] = []
        try:
            with choose_display(formatted="format" not in self.fields) as display:
                result = self._answer(messages, deltas, display)
                answer = assemble_answer(deltas, result.finish_reason)
                for call in answer.tool_calls:
                    if not (self.mcp_tools and self.mcp_tools.has(call.name)):
                        display.show_call(call)
        except BaseException:
            # Only the text stays: a tool call without its result would make the next request invalid.
            if text := "".join(delta.text for delta in deltas):
                self._messages = [*messages, {"role": "assistant", "content": text}]
            raise
        self._messages = [*messages, answer.message]
        return ChatReply(answer.tool_calls, result)

    def clear(self) -> None:
        """Remove all messages but the system message, and all attachments."""
        self._messages = [*self._system]
        self._attachments = []

    def _make_tools(self, servers: Sequence["McpServerConfig"], allowed: Sequence[str]) -> "McpTools":
        from .mcp_tools import McpTools

        return McpTools(servers, allowed)

    def _answer(
        self,
        messages: Sequence[lmwire.MessageDict],
        deltas: list[lmwire.TokenDelta | lmwire.ToolCallDelta],
        display: PlainDisplay,
    ) -> ResultDone:
        stream: lmwire.Stream[Any] | None = None
        try:
            with _held_interrupts():  # an answer that nobody knows yet could not be cancelled
                stream = self._worker.chat(messages, **self.fields, on_progress=display.show_progress)
            with stream:
                for delta in stream:
                    deltas.append(delta)
                    if delta.reasoning:
                        display.show_reasoning(delta.reasoning)
                    if delta.text:
                        display.show(delta.text)
                return stream.result
        except KeyboardInterrupt:
            if stream:
                stream.close()
            raise Stopped from None


@contextmanager
def _held_interrupts() -> Generator[None]:
    """Let a Ctrl-C in the block come at its end."""
    held: list[int] = []
    previous = signal.signal(signal.SIGINT, lambda number, _: held.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)
    if held:
        raise KeyboardInterrupt
