"""Reasoning that a request asks for and the model cannot do. Over HTTP it is ignored, as unknown fields are.

Agents ask for reasoning whatever the model is. Their requests would fail on each model that only answers.
"""

from typing import Any, Final
from weakref import WeakKeyDictionary

from lmwire import AsyncWorker, MessageDict, RequestFailed

from ..errors import RenameField
from ..http.context import RequestContext

_FIELD: Final = "reasoning"
_MESSAGES: Final[list[MessageDict]] = [{"role": "user", "content": "."}]
_known: Final[WeakKeyDictionary[AsyncWorker, bool]] = WeakKeyDictionary()
"""Ability of each worker's model to reason with its own chat template."""


async def drop_unsupported_reasoning(
    context: RequestContext, options: dict[str, Any], worker: AsyncWorker, rename: RenameField
) -> None:
    """Remove reasoning from a chat's options if the model has none, and report it.

    Only the worker knows whether the model can reason. A server that refuses unknown fields leaves that to the worker.

    Args:
        context: The request's context.
        options: The options of the chat, which change.
        worker: The worker with the model.
        rename: Maps field paths to those of the client.

    Raises:
        LmwireError: The worker has failed.
    """
    if options.get(_FIELD) != "on" or context.unknown_fields.are_refused:
        return
    if "chat_template" in options:
        can_reason = await _ask(worker, {"chat_template": options["chat_template"]})
    elif (can_reason := _known.get(worker)) is None:
        can_reason = _known[worker] = await _ask(worker, {})
    if not can_reason:
        del options[_FIELD]
        options.pop("reasoning_budget", None)
        parent, _, name = (rename(_FIELD) or _FIELD).rpartition(".")
        context.unknown_fields.ignore(parent, name)


async def _ask(worker: AsyncWorker, template: Any) -> bool:
    try:
        await worker.count_tokens(_MESSAGES, reasoning="on", **template)
    except RequestFailed as error:
        return error.field != _FIELD  # the chat reports another error if it has it too
    return True
