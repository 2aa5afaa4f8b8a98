"""The chat template of a model: its only one, one of several that a load names, or `role: content` lines."""

import re
from pathlib import Path
from typing import Final

from lmwire_protocol import RequestError

from ..models.model_files import read_file
from ..models.tokenizer import Tokenizer
from .chat_template import select_template

DEFAULT: Final = "default"
"""Name of a model's only template, or of the one for requests without tools."""
ROLE_CONTENT: Final = "role_content"
"""Name of the lines that a model without a template reads."""
MAX_TEMPLATE_BYTES: Final = 2**20
"""Maximum size of a template file; the longest known templates have some 20 kilobytes."""
_SUFFIX: Final = ".jinja"
_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")
_FIELD: Final = "chat_template_name"


def choose_template(tokenizer: Tokenizer, name: str | None, directory: Path | None) -> str | None:
    """Give a tokenizer the template of this name, and return that of the template in use; None for the model's default.

    A file of the operator's folder wins over a template of the model.

    Args:
        tokenizer: The model's tokenizer, with all templates of the model. Only the one in use remains.
        name: The template's name, with or without `.jinja`; None for the model's default.
        directory: The operator's folder of templates; None without one.

    Raises:
        RequestError: invalid_request: there is no such template, or it is not valid Jinja.
    """
    if name is None:
        return None if tokenizer.has_chat_template else ROLE_CONTENT
    if not _NAME.fullmatch(name):
        raise _invalid("must be a template's name, of letters, digits and `_.-`, and not a path")
    name = name.removesuffix(_SUFFIX)
    own = _own_templates(tokenizer)
    source = _read_from(directory, name)
    if source is None and (source := own.get(name)) is None:
        names = ", ".join(sorted({*own, *_names_in(directory)})) or "none"
        raise _invalid(f"there is no chat template {name!r}; there are: {names}")
    _replace_template(tokenizer, source)
    try:
        select_template(tokenizer, None, tools=False)
    except RequestError as error:
        raise _invalid(f"{name!r} cannot be used: {error.message}") from None
    return name


def _own_templates(tokenizer: Tokenizer) -> dict[str, str]:
    """Return the model's Jinja templates by name."""
    own = tokenizer.chat_template
    return {DEFAULT: own} if isinstance(own, str) else dict(own or {})


def _names_in(directory: Path | None) -> list[str]:
    return [path.stem for path in directory.glob(f"*{_SUFFIX}")] if directory else []


def _read_from(directory: Path | None, name: str) -> str | None:
    """Return the content of a template file; None if the folder does not have it."""
    path = directory and directory / f"{name}{_SUFFIX}"
    if directory is None or path is None or not path.exists():
        return None
    if not path.resolve().is_relative_to(directory.resolve()):
        raise _invalid(f"{name!r} is a link to a file outside the folder of templates")
    try:
        return read_file(path, MAX_TEMPLATE_BYTES).decode()
    except RequestError as error:
        raise _invalid(error.message) from None
    except UnicodeDecodeError as error:
        raise _invalid(f"{name!r} is not UTF-8: {error.reason} at byte {error.start}") from None


def _replace_template(tokenizer: Tokenizer, source: str) -> None:
    tokenizer.chat_template = source
    tokenizer.renderer = None  # it would win


def _invalid(problem: str) -> RequestError:
    return RequestError("invalid_request", f"{_FIELD}: {problem}", field=_FIELD)
