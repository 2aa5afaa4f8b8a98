"""A conversation on a terminal: reads a line, shows the answer, and repeats."""

import sys
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Final

import lmwire
from lmwire_protocol.events import ResultDone

from ..terminal_text import dim, strip_controls
from .chat_session import ChatSession, Stopped
from .keyboard import echo_off

_PROMPT: Final = "> "
_HELP: Final = """\
/image FILE   send an image with the next prompt
/clear        forget the conversation
/help         show this help
/quit         quit, as Ctrl-D does
Ctrl-C        stop the answer; at the prompt, twice quits"""

_CUT_OFF: Final[dict[str, str]] = {
    "length": "no more tokens were allowed",
    "capacity": "there was no memory for more",
}


class Conversation:
    """One conversation with a model.

    Args:
        session: A session with its model loaded.
        model: The model's name, for the greeting.
    """

    def __init__(self, session: ChatSession, model: str) -> None:
        self._session = session
        self._model = model

    def run(self) -> None:
        """Read and answer until the person quits."""
        with suppress(ImportError):
            import_module("readline")  # gives `input` line editing and a history; may write to stdout at once
        print_note(f"{self._model} is ready. /help lists the commands, Ctrl-D quits.")
        while (line := _read(_PROMPT)) is not None:
            match line.strip():
                case "":
                    continue
                case "/quit":
                    return
                case "/help":
                    print_note(_HELP)
                case "/clear":
                    self._session.clear()
                    print_note("Forgotten.")
                case "/image":
                    print_note("Which? /image FILE")
                case command if command.startswith("/image "):
                    self._attach(command.removeprefix("/image ").strip())
                case command if command.startswith("/") and command[1:].isalpha():
                    print_note(f"There is no command {command}; /help lists the commands.")
                case _:
                    self._send(line)
                    print()

    def _attach(self, path: str) -> None:
        try:
            self._session.attach(lmwire.image_part(Path(path).expanduser()))
        except OSError as error:
            print_note(f"{path}: {error.strerror}")
        else:
            print_note("It will be sent with your next prompt.")

    def _send(self, prompt: str) -> None:
        """Send the prompt, and then the results of the model's tool calls until it calls no more."""
        turn = [self._session.user_message(prompt)]
        while turn:
            turn = [call.result(_read(f"{strip_controls(call.name)}: ") or "") for call in self._answer(turn)]

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
            print_summary(reply.result)
            return reply.calls
        return []


def print_summary(result: ResultDone) -> None:
    """Print a line with an answer's tokens and speed, and with the reason if it was cut off."""
    tokens = result.usage.completion_tokens
    parts = [f"{tokens} token{'' if tokens == 1 else 's'}"]
    if result.usage.draft_accepted:
        parts.append(f"{result.usage.draft_accepted} of them drafted")
    if result.timings.decode_tps is not None:
        parts.append(f"{result.timings.decode_tps:,.0f} tok/s")
    if reason := _CUT_OFF.get(result.finish_reason):
        parts.append(f"cut off: {reason}")
    print_note(", ".join(parts))


def _read(prompt: str) -> str | None:
    """Return the next line, or None when the person quits: Ctrl-D, or Ctrl-C twice."""
    for hint in ("Ctrl-C once more quits, as Ctrl-D does.", None):
        try:
            return input(prompt)
        except EOFError:
            break
        except KeyboardInterrupt:
            if hint:
                print()
                print_note(hint)
    print()
    return None


def print_note(text: str) -> None:
    """Print a dimmed note if stdout is a terminal. In a pipe it would mix with the answer."""
    if sys.stdout.isatty():
        print(dim(text))
