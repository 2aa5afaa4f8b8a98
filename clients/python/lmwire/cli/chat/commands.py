"""The slash commands of a conversation."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol, cast

import lmwire
from lmwire.options import MediaPartDict, TextPartDict

from .saved_chats import InvalidChat, SavedChat, load_chat, save_chat, saved_names
from .settings import change_setting, describe_settings


class Chat(Protocol):
    """The conversation that the commands change."""

    model: str
    fields: dict[str, Any]

    @property
    def messages(self) -> list[lmwire.MessageDict]:
        """The conversation so far, with the system message."""
        ...

    @messages.setter
    def messages(self, messages: list[lmwire.MessageDict]) -> None: ...

    def switch_model(self, name: str) -> None:
        """Load another model, and keep the conversation."""
        ...

    def attach(self, part: MediaPartDict | TextPartDict) -> None:
        """Attach an image or a sound to the next prompt."""
        ...

    def set_system(self, text: str) -> None:
        """Replace the system message; an empty one removes it."""
        ...

    def clear(self) -> None:
        """Forget the conversation."""
        ...


class _Refused(Exception):
    """A sentence about a command that cannot be run."""


class _Command(NamedTuple):
    """A command: what `/help` shows of it, and its function, which returns a note."""

    argument: str
    help: str
    run: Callable[[Chat, str], str]


def run_command(chat: Chat, line: str) -> str:
    """Run a slash command, and return a note for the person. An error is a note too.

    Args:
        chat: The conversation.
        line: The line that was typed.
    """
    name, _, argument = line.strip().removeprefix("/").partition(" ")
    command = COMMANDS.get("help" if name == "?" else name)
    if command is None:
        return f"/{name} is unknown; /help lists the commands."
    try:
        return command.run(chat, argument.strip())
    except (_Refused, InvalidChat, ValueError, lmwire.RequestFailed) as error:
        return str(error)


def is_command(line: str) -> bool:
    """Return whether a line is a slash command. A path, or a text of several lines, is a prompt."""
    word = line.strip().partition(" ")[0]
    return word.startswith("/") and (word[1:].isalpha() or word == "/?") and "\n" not in line.strip()


def ends_chat(line: str) -> bool:
    """Return whether a line ends the conversation. Two of the words are those of other programs."""
    return line.strip() in ("/quit", "/exit", "/bye")


def _help(chat: Chat, argument: str) -> str:
    rows = [(f"/{name} {command.argument}".strip(), command.help) for name, command in COMMANDS.items()]
    rows += [
        ("/quit", "quit, as Ctrl-D, /exit and /bye do"),
        ("Ctrl-C", "stop the answer; at the prompt, twice quits"),
        ('Alt-Enter, \\, """', "start another line; a pasted text keeps its lines"),
    ]
    width = max(len(left) for left, _ in rows)
    return "\n".join(f"{left.ljust(width)}  {right}" for left, right in rows)


def _clear(chat: Chat, argument: str) -> str:
    chat.clear()
    return "Forgotten."


def _model(chat: Chat, argument: str) -> str:
    if not argument:
        return f"The model is {chat.model}. /model NAME loads another one.{_models_here()}"
    chat.switch_model(argument)
    return f"{chat.model} is ready. It has the conversation so far."


def _models_here() -> str:
    """Return a sentence with the models on this machine; empty if they cannot be listed."""
    try:
        names = [model.id for model in lmwire.local_models() if model.problem is None]
    except lmwire.LmwireError:
        return ""
    return f" On this machine: {', '.join(names)}." if names else ""


def _system(chat: Chat, argument: str) -> str:
    chat.set_system(argument)
    return "The system message is set." if argument else "The system message is removed."


def _attach(kind: str, read: Callable[[Path], MediaPartDict]) -> Callable[[Chat, str], str]:
    """Return the function of a command that attaches a file."""

    def run(chat: Chat, argument: str) -> str:
        if not argument:
            raise _Refused(f"Which? /{kind} FILE")
        try:
            chat.attach(read(Path(argument).expanduser()))
        except OSError as error:
            raise _Refused(f"{argument}: {error.strerror}") from None
        return "It will be sent with your next prompt."

    return run


def _attach_pdf(chat: Chat, argument: str) -> str:
    if not argument:
        raise _Refused("Which? /pdf FILE")
    from lmwire.pdf import InvalidPdf, read_pdf

    path = Path(argument).expanduser()
    try:
        found = read_pdf(path.read_bytes())
    except OSError as error:
        raise _Refused(f"{argument}: {error.strerror}") from None
    except InvalidPdf as error:
        raise _Refused(f"{argument}: {error}") from None
    chat.attach({"type": "text", "text": f"{path.name}:\n\n{found.text}\n"})
    rest = "" if found.is_whole else ", whose end is left out"
    pages = f"{found.pages} page{'' if found.pages == 1 else 's'}"
    return f"The text of {pages}{rest} will be sent with your next prompt."


def _save(chat: Chat, argument: str) -> str:
    if not argument:
        raise _Refused("Under which name? /save NAME, or a path with a slash in it")
    file = save_chat(argument, SavedChat(model=chat.model, messages=cast("list[dict[str, Any]]", chat.messages)))
    return f"Saved in {file}."


def _load(chat: Chat, argument: str) -> str:
    if not argument:
        return f"Which? /load NAME. There are: {', '.join(saved_names()) or 'none'}."
    chat.messages = cast("list[lmwire.MessageDict]", load_chat(argument).messages)
    return f"Loaded {len(chat.messages)} messages."


def _tools(chat: Chat, argument: str) -> str:
    if not argument:
        names = [tool["function"]["name"] for tool in chat.fields.get("tools", ())]
        return f"The tools are: {', '.join(names) or 'none'}. /tools FILE sets them, /tools off removes them."
    if argument == "off":
        chat.fields.pop("tools", None)
        return "There are no tools now."
    try:
        tools = json.loads(Path(argument).expanduser().read_bytes())
        names = [str(tool["function"]["name"]) for tool in tools]
    except OSError as error:
        raise _Refused(f"{argument}: {error.strerror}") from None
    except (ValueError, TypeError, KeyError):
        raise _Refused(f'{argument} is not a JSON list such as [{{"type": "function", "function": …}}]') from None
    chat.fields["tools"] = tools
    return f"The tools are: {', '.join(names)}. You are asked for the result of each call."


def _set(chat: Chat, argument: str) -> str:
    name, _, value = argument.partition(" ")
    return change_setting(chat.fields, name, value.strip()) if value.strip() else describe_settings(chat.fields)


COMMANDS: Final[dict[str, _Command]] = {
    "model": _Command("[NAME]", "load another model and keep the conversation, or list those here", _model),
    "system": _Command("[TEXT]", "set the system message, or remove it", _system),
    "image": _Command("FILE", "send an image with the next prompt", _attach("image", lmwire.image_part)),
    "sound": _Command("FILE", "send a sound with the next prompt", _attach("sound", lmwire.audio_part)),
    "pdf": _Command("FILE", "send the text of a PDF with the next prompt", _attach_pdf),
    "tools": _Command("[FILE|off]", "set the functions that the model may call", _tools),
    "set": _Command("[NAME VALUE]", "change or show sampling, such as temperature 0.7", _set),
    "save": _Command("NAME", "save the conversation", _save),
    "load": _Command("[NAME]", "go on with a saved conversation", _load),
    "clear": _Command("", "forget the conversation", _clear),
    "help": _Command("", "show this help", _help),
}
"""The commands by name. /quit is the conversation's own."""
