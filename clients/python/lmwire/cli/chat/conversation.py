"""A conversation on a terminal: reads a prompt, shows the answer, and repeats."""

import sys
from contextlib import suppress
from typing import Any, Final, cast

import lmwire
from lmwire_protocol.events import ResultDone
from lmwire_protocol.printable import one_line, printable

from ..terminal_text import dim
from .chat_session import ChatSession, Stopped
from .commands import ends_chat, is_command, run_command
from .keyboard import echo_off
from .reader import choose_reader, read
from .saved_chats import LAST, InvalidChat, SavedChat, save_chat

_PROMPT: Final = "> "
_MAX_SHOWN: Final = 200
"""Characters of a tool's result that are shown."""
MAX_ROUNDS: Final = 25
"""Most answers in a row that call tools, if nobody can be asked."""

_CUT_OFF: Final[dict[str, str]] = {
    "length": "no more tokens were allowed",
    "capacity": "there was no memory for more",
}


class Conversation:
    """One conversation with a model.

    Args:
        session: A session with its model loaded.
    """

    def __init__(self, session: ChatSession) -> None:
        self._session = session
        self._last: ResultDone | None = None
        self._reader = choose_reader(self._status)

    def run(self) -> None:
        """Read and answer until the person quits."""
        print_note(f"{self._session.model} is ready. /help lists the commands, Ctrl-D quits.")
        while (line := read(self._reader, _PROMPT, print_note)) is not None:
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
            parts += [_context(self._last, self._session.context_len), *_speed(self._last)]
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
        return read(self._reader, question, print_note)

    def _answer(self, turn: list[lmwire.MessageDict]) -> list[lmwire.ToolCall]:
        """Show an answer, and return its tool calls."""
        try:
            with echo_off():
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


def answer_once(session: ChatSession, prompt: str) -> ResultDone:
    """Answer a prompt without a person, after the calls of MCP tools that are allowed, and return the last result.

    Args:
        session: A session with its model loaded.
        prompt: The prompt.
    """
    reply = session.send_prompt(prompt)
    tools = session.mcp_tools
    for _ in range(MAX_ROUNDS):
        if not (tools and reply.calls and all(tools.has(call.name) for call in reply.calls)):
            break
        reply = session.send([call.result(tools.answer(call, None)) for call in reply.calls])
    return reply.result


def _shortened(text: str) -> str:
    line = one_line(text.strip())
    return line if len(line) <= _MAX_SHOWN else f"{line[:_MAX_SHOWN]}…"


def print_summary(result: ResultDone) -> None:
    """Print a line with an answer's tokens and speed, and with the reason if it was cut off."""
    tokens = result.usage.completion_tokens
    parts = [f"{tokens} token{'' if tokens == 1 else 's'}"]
    if result.usage.draft_accepted:
        parts.append(f"{result.usage.draft_accepted} of them drafted")
    parts += _speed(result)
    if reason := _CUT_OFF.get(result.finish_reason):
        parts.append(f"cut off: {reason}")
    print_note(", ".join(parts))


def _speed(result: ResultDone) -> list[str]:
    tps = result.timings.decode_tps
    return [] if tps is None else [f"{tps:,.0f} tok/s"]


def _context(result: ResultDone, context_len: int | None) -> str:
    used = result.usage.prompt_tokens + result.usage.completion_tokens
    return f"{used:,} of {context_len:,} tokens ({used / context_len:.0%})" if context_len else f"{used:,} tokens"


def print_note(text: str) -> None:
    """Print a dimmed note if stdout is a terminal. In a pipe it would mix with the answer."""
    if sys.stdout.isatty():
        print(dim(printable(text)))
