"""The conversation on a terminal: reads a line, shows the answer, and again."""

import sys
from contextlib import suppress
from pathlib import Path
from typing import Final

import lmwire
from lmwire_protocol.events import ResultDone

from .display import dim, printable
from .keyboard import unechoed
from .talk import Stopped, Talk

_PROMPT: Final = "> "
_HELP: Final = """\
/image FILE   show an image with the next prompt
/clear        forget what was said
/help         show this
/quit         leave, as Ctrl-D does
Ctrl-C        stop the answer; at the prompt, twice leaves"""

_CUT_OFF: Final[dict[str, str]] = {
    "length": "no more tokens were allowed",
    "capacity": "there was no memory for more",
}


class Conversation:
    """One conversation, to its end.

    Args:
        talk: with its model loaded.
        model: the model's name, for the greeting.
    """

    def __init__(self, talk: Talk, model: str) -> None:
        self._talk = talk
        self._model = model

    def run(self) -> None:
        """Returns when the person leaves."""
        with suppress(ImportError):
            import readline  # noqa: F401 (gives `input` line editing and a history; may write to stdout at once)
        note(f"{self._model} is ready. /help lists the commands, Ctrl-D leaves.")
        while (line := _read(_PROMPT)) is not None:
            match line.strip():
                case "":
                    continue
                case "/quit":
                    return
                case "/help":
                    note(_HELP)
                case "/clear":
                    self._talk.forget()
                    note("Forgotten.")
                case "/image":
                    note("Which? /image FILE")
                case command if command.startswith("/image "):
                    self._attach(command.removeprefix("/image ").strip())
                case command if command.startswith("/") and command[1:].isalpha():
                    note(f"There is no {command}; /help lists what there is.")
                case _:
                    self._say(line)
                    print()

    def _attach(self, path: str) -> None:
        try:
            self._talk.attach(lmwire.image_part(Path(path).expanduser()))
        except OSError as error:
            note(f"{path}: {error.strerror}")
        else:
            note("It goes with what you say next.")

    def _say(self, prompt: str) -> None:
        """Says `prompt`, and then the results of what the model calls, as long as it calls something."""
        turn = [self._talk.prompt(prompt)]
        while turn:
            turn = [call.result(_read(f"{printable(call.name)}: ") or "") for call in self._answer(turn)]

    def _answer(self, turn: list[lmwire.MessageDict]) -> list[lmwire.ToolCall]:
        """Shows an answer and returns the calls in it."""
        try:
            with unechoed():
                reply = self._talk.say(turn)
        except Stopped:
            note("stopped")
        except lmwire.RequestFailed as failure:
            note(str(failure))
        else:
            tell(reply.result)
            return reply.calls
        return []


def tell(result: ResultDone) -> None:
    """Says in a line what an answer took."""
    tokens = result.usage.completion_tokens
    parts = [f"{tokens} token{'' if tokens == 1 else 's'}"]
    if result.usage.draft_accepted:
        parts.append(f"{result.usage.draft_accepted} of them drafted")
    if result.timings.decode_tps is not None:
        parts.append(f"{result.timings.decode_tps:,.0f} tok/s")
    if reason := _CUT_OFF.get(result.finish_reason):
        parts.append(f"cut off: {reason}")
    note(", ".join(parts))


def _read(prompt: str) -> str | None:
    """The next line; None when the person leaves: Ctrl-D, or Ctrl-C twice."""
    for hint in ("Ctrl-C once more leaves, as Ctrl-D does.", None):
        try:
            return input(prompt)
        except EOFError:
            break
        except KeyboardInterrupt:
            if hint:
                print()
                note(hint)
    print()
    return None


def note(text: str) -> None:
    """Says something to a person on the terminal, dimmed. In a pipe there is nobody to say it to."""
    if sys.stdout.isatty():
        print(dim(text))
