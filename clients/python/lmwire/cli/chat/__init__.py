"""`lmwire chat`: a conversation on a terminal, or one answer in a pipeline."""

import sys
from argparse import Namespace
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import lmwire
from lmwire_protocol.imports import import_msgspec, uncollected

from ..arguments.chat import BUILT_IN
from ..errors import INTERRUPTED, OK, USAGE, CliError

if TYPE_CHECKING:
    from pathlib import Path

    from lmwire.mcp import McpServerConfig
    from lmwire.transport.child import Spawn

    from .saved_chats import SavedChat


def run(arguments: Namespace) -> int:
    """Run the conversation, or give the one answer, and return the exit code."""
    prompt = _prompt(arguments.prompt)
    saved = _resumed(arguments.resume)
    servers = _servers(arguments.mcp_config)
    spawn = _start_worker(arguments.worker)
    with uncollected():
        # These take as long to import as the worker takes to start, so they come after it.
        import_msgspec()
        from .chat_session import ChatSession, Stopped
        from .summary import print_summary

    model = saved.model if saved and arguments.model == BUILT_IN else arguments.model
    try:
        fields = _request_fields(arguments)
        allowed = arguments.allow_tool
        with ChatSession(arguments.worker, arguments.system, fields, spawn, servers, allowed) as session:
            session.load(model, _given(arguments, lmwire.LoadOptions))
            if saved:
                session.messages = cast("list[lmwire.MessageDict]", saved.messages)
            for image in arguments.image:
                session.attach(image)
            if prompt is None:
                from .conversation import Conversation  # a single answer needs none of it

                Conversation(session).run()
            else:
                print_summary(session.answer_once(prompt))
    except Stopped:
        return INTERRUPTED
    except lmwire.LmwireError as error:
        raise CliError(_sentence(error)) from error
    return OK


def _start_worker(command: Sequence[str] | None) -> "Spawn":
    """Start the worker, and return what gives it to the session. It ends with this process's pipes.

    Args:
        command: The command that runs it; None for this installation's own.
    """
    from lmwire.transport.child import spawn_process

    try:
        child = spawn_process(command or lmwire.DEFAULT_COMMAND)
    except OSError:
        return spawn_process  # fails again, and the session reports it
    return lambda _: child


def _resumed(name: str | None) -> "SavedChat | None":
    """Return the conversation to go on with, if there is one.

    Args:
        name: Its name; None to begin a new one.
    """
    if name is None:
        return None
    from .saved_chats import InvalidChat, load_chat

    try:
        return load_chat(name)
    except InvalidChat as error:
        raise CliError(f"--resume: {error}", USAGE) from None


def _servers(file: "Path | None") -> "Sequence[McpServerConfig]":
    """Return the MCP servers of a config file; none without one."""
    if file is None:
        return ()
    from lmwire.mcp import InvalidMcpConfig, read_mcp_config

    try:
        return read_mcp_config(file)
    except InvalidMcpConfig as error:
        raise CliError(f"--mcp-config: {error}", USAGE) from None


def _prompt(given: str | None) -> str | None:
    """Return the prompt to answer, or None for a conversation."""
    if sys.stdin.isatty() and (given or sys.stdout.isatty()):
        return given
    prompt = "\n\n".join(part for part in (given, sys.stdin.read()) if part)
    if not prompt.strip():
        raise CliError("nothing to answer: stdin was empty, and there is no -p", USAGE)
    return prompt


def _request_fields(arguments: Namespace) -> dict[str, Any]:
    fields = _given(arguments, lmwire.ChatOptions)
    if arguments.schema is not None:
        fields["format"] = {"type": "json_schema", "schema": arguments.schema}
    return fields


def _given(arguments: Namespace, options: type) -> dict[str, Any]:
    """Return the options that the command line gives. The worker has defaults for the others."""
    given = vars(arguments)
    return {name: given[name] for name in options.__annotations__ if given.get(name) is not None}


def _sentence(error: "lmwire.LmwireError") -> str:
    if isinstance(error, lmwire.RequestFailed) and error.code == "model_not_found":
        return f"{error.event.error}\n`lmwire models` lists what is on this machine."
    return str(error)
