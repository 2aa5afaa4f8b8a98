"""Read prompts with prompt_toolkit: pasted text as one prompt, several lines, a history, completion, a status line."""

from collections.abc import Callable, Iterable
from contextlib import suppress

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion, PathCompleter
from prompt_toolkit.document import Document
from prompt_toolkit.formatted_text import ANSI
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.output.color_depth import ColorDepth

from ..private_files import touch_private
from .commands import COMMANDS
from .reader import is_unfinished
from .saved_chats import saved_names, state_folder
from .settings import SETTINGS


class PromptReader:
    """Reads with prompt_toolkit.

    Args:
        status: Returns the text of the status line.
    """

    def __init__(self, status: Callable[[], str]) -> None:
        self._session: PromptSession[str] = PromptSession(
            history=_history(),
            completer=_CommandCompleter(),
            complete_while_typing=False,
            multiline=True,  # a pasted text keeps its lines; Enter is bound to send all the same
            key_bindings=_key_bindings(),
            prompt_continuation="… ",
            bottom_toolbar=lambda: ANSI(f"\x1b[2m{status()}\x1b[0m"),
            color_depth=ColorDepth.from_env(),
            reserve_space_for_menu=4,
        )
        self._session.app.ttimeoutlen = 0.1

    def ask(self, prompt: str) -> str:
        """See `Ask`."""
        return self._session.prompt(prompt)


def _history() -> History:
    """Return the history of all chats, or one of this chat alone if no file can be written."""
    with suppress(OSError):
        return FileHistory(str(touch_private(state_folder() / "chat_history")))
    return InMemoryHistory()


def _key_bindings() -> KeyBindings:
    bindings = KeyBindings()

    @bindings.add("enter")
    def _(event: KeyPressEvent) -> None:
        """Send the prompt, or continue an unfinished one on the next line."""
        if is_unfinished(event.current_buffer.text):
            event.current_buffer.insert_text("\n")
        else:
            event.current_buffer.validate_and_handle()

    @bindings.add("escape", "enter")
    def _(event: KeyPressEvent) -> None:
        """Start another line."""
        event.current_buffer.insert_text("\n")

    return bindings


class _CommandCompleter(Completer):
    """Completes slash commands and their arguments."""

    def __init__(self) -> None:
        self._paths = PathCompleter(expanduser=True)

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        """Yield what can stand at the cursor."""
        text = document.text_before_cursor
        name, space, argument = text.partition(" ")
        if not text.startswith("/"):
            return
        if not space:
            yield from _starting(name, [f"/{command}" for command in COMMANDS])
        elif name in ("/image", "/sound", "/tools"):
            yield from self._paths.get_completions(Document(argument, len(argument)), complete_event)
        elif name in ("/load", "/save"):
            yield from _starting(argument, saved_names())
        elif name == "/set":
            yield from _starting(argument, SETTINGS)


def _starting(start: str, words: Iterable[str]) -> Iterable[Completion]:
    return (Completion(word, start_position=-len(start)) for word in words if word.startswith(start))
