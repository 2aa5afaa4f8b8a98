"""`lmwire chat`: a conversation on a terminal, or one answer in a pipeline."""

import sys
from argparse import Namespace
from typing import Any

import lmwire

from ..failures import INTERRUPTED, OK, USAGE, Failure
from .conversation import Conversation, tell
from .talk import Stopped, Talk


def run(arguments: Namespace) -> int:
    prompt = _prompt(arguments.prompt)
    try:
        with Talk(arguments.worker, arguments.system, _fields(arguments)) as talk:
            talk.load(arguments.model, _given(arguments, lmwire.LoadOptions))
            for image in arguments.image:
                talk.attach(image)
            if prompt is None:
                Conversation(talk, arguments.model).run()
            else:
                tell(talk.answer(prompt).result)
    except Stopped:
        return INTERRUPTED
    except lmwire.LmwireError as error:
        raise Failure(_sentence(error)) from error
    return OK


def _prompt(given: str | None) -> str | None:
    """The one prompt to answer; None for a conversation."""
    if sys.stdin.isatty() and (given or sys.stdout.isatty()):
        return given
    prompt = "\n\n".join(part for part in (given, sys.stdin.read()) if part)
    if not prompt.strip():
        raise Failure("nothing to answer: stdin was empty, and there is no -p", USAGE)
    return prompt


def _fields(arguments: Namespace) -> dict[str, Any]:
    """The fields of the request."""
    fields = _given(arguments, lmwire.ChatOptions)
    if arguments.schema is not None:
        fields["format"] = {"type": "json_schema", "schema": arguments.schema}
    return fields


def _given(arguments: Namespace, options: type) -> dict[str, Any]:
    """Those of the options that were given; what was not is the worker's to choose."""
    given = vars(arguments)
    return {name: given[name] for name in options.__annotations__ if given.get(name) is not None}


def _sentence(error: lmwire.LmwireError) -> str:
    if isinstance(error, lmwire.RequestFailed) and error.code == "model_not_found":
        return f"{error.event.error}\n`lmwire models` lists what is on this machine."
    return str(error)
