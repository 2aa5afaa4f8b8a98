"""A conversation on a terminal: reads a prompt, shows the answer, and repeats."""

import sys
import termios
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import Any, Final, cast

import lmwire
from lmwire_protocol.events import ResultDone
from lmwire_protocol.printable import one_line

from .chat_session import ChatSession, Stopped
from .commands import ends_chat, is_command, run_command
from .reader import choose_reader, read
from .saved_chats import LAST, InvalidChat, SavedChat, save_chat
from .summary import print_note, print_summary, speed

_PROMPT: Final = "> "
_MAX_SHOWN: Final = 200
"""Characters of a tool's result that are shown."""


class Conversation:
    """One conversation with a model.

    Args:
        session: A session with its model loaded.
    """

    def __init__(self, session: ChatSession) -> None:
        self._session = session
        self._last: ResultDone | None = None
        self._ask_person = choose_reader(self._status)

    def run(self) -> None:
        """Read and answer until the person quits."""
        print_note(f"{self._session.model} is ready. /help lists the commands, Ctrl-D quits.")
        while (line := read(self._ask_person, _PROMPT, print_note)) is not None:
            if ends_chat(line):
                return
            if is_command(line):
                print_note(run_command(self._session, line))
            elif line.strip():
                self._send(line)
                self._save()
                print()

    def _status(self) -> str:
        """Return the status line: the model, and the context and speed of the last answer."""
        parts = [one_line(self._session.model)]
        if self._last:
            parts += [_context(self._last, self._session.context_len), *speed(self._last)]
        return " · ".join(parts)

    def _save(self) -> None:
        """Save the conversation for `--resume`. A disk that is full does not end the chat."""
        messages = cast("list[dict[str, Any]]", self._session.messages)
        with suppress(InvalidChat, OSError):
            save_chat(LAST, SavedChat(model=self._session.model, messages=messages))

    def _send(self, prompt: str) -> None:
        """Send the prompt, and then the results of the model's tool calls until it calls no more."""
        turn = [self._session.user_message(prompt)]
        while turn:
            turn = [call.result(self._result(call)) for call in self._answer(turn)]

    def _result(self, call: lmwire.ToolCall) -> str:
        """Return the result of a call: that of an MCP server's tool, or what the person types."""
        tools = self._session.mcp_tools
        if not (tools and tools.has(call.name)):
            return self._ask(f"{one_line(call.name)}: ") or ""
        result = tools.answer(call, self._ask)
        print_note(_shortened(result))
        return result

    def _ask(self, question: str) -> str | None:
        return read(self._ask_person, question, print_note)

    def _answer(self, turn: list[lmwire.MessageDict]) -> list[lmwire.ToolCall]:
        """Show an answer, and return its tool calls."""
        try:
            with _echo_off():
                reply = self._session.send(turn)
        except Stopped:
            print_note("stopped")
        except lmwire.RequestFailed as failure:
            print_note(str(failure))
        else:
            self._last = reply.result
            print_summary(reply.result)
            return reply.calls
        return []


def _shortened(text: str) -> str:
    line = one_line(text.strip())
    return line if len(line) <= _MAX_SHOWN else f"{line[:_MAX_SHOWN]}…"


def _context(result: ResultDone, context_len: int | None) -> str:
    used = result.usage.prompt_tokens + result.usage.completion_tokens
    return f"{used:,} of {context_len:,} tokens ({used / context_len:.0%})" if context_len else f"{used:,} tokens"


@contextmanager
def _echo_off() -> Generator[None]:
    """Hide typed keys while the context is entered; the next read of stdin gets them.

    An answer is drawn repeatedly in one place, and echoed keys would shift it.
    """
    settings = termios.tcgetattr(sys.stdin)
    quiet = settings.copy()
    quiet[3] &= ~termios.ECHO
    termios.tcsetattr(sys.stdin, termios.TCSADRAIN, quiet)
    try:
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, settings)
