"""Template variables and reasoning that a model's chat template does not support.

Over HTTP they are ignored and reported, as unknown fields are. Agents ask for reasoning whatever the model is, and
their requests would fail on each model that only answers. Only the worker knows the template, so it is asked. A server
that refuses unknown fields leaves all to the worker, which refuses them.
"""

from collections.abc import Collection
from typing import Any, Final
from weakref import WeakKeyDictionary

from lmwire import AsyncWorker, MessageDict, RequestFailed

from ..errors import RenameField
from ..http.context import RequestContext

_VARIABLES: Final = "template_args"
_REASONING: Final = "reasoning"
_RESERVED: Final = frozenset({"messages", "tools", "add_generation_prompt"})
"""Variables that fields of a request set. The worker refuses them, and so does the server."""
_MAX_UNKNOWN: Final = 16
"""Most variables of a request that are ignored. With more, the request is refused."""
_MAX_ASKED: Final = 64
"""Most variables that the worker is asked about. With more, the request goes to the worker as it is."""
_MAX_KNOWN: Final = 256
_MESSAGES: Final[list[MessageDict]] = [{"role": "user", "content": "."}]
_known_variables: Final[WeakKeyDictionary[AsyncWorker, set[str]]] = WeakKeyDictionary()
"""Variables that the template of each worker's model has, as far as requests have used them."""
_can_reason: Final[WeakKeyDictionary[AsyncWorker, bool]] = WeakKeyDictionary()
"""Ability of each worker's model to reason with its own chat template."""


async def refused_field(worker: AsyncWorker, **options: Any) -> str | None:
    """Return the field for which a model refuses a conversation; None if it takes the options.

    Args:
        worker: The worker with the model. It makes a prompt, and generates nothing.
        options: The options, as `lmwire.TemplateOptions`.

    Returns:
        The field's path; empty for an error without a field.
    """
    try:
        await worker.count_tokens(_MESSAGES, **options)
    except RequestFailed as error:
        return error.field or ""
    return None


async def drop_unknown_variables(context: RequestContext, options: dict[str, Any], worker: AsyncWorker) -> None:
    """Remove template variables from a chat's options that the chat template does not have, and report them.

    The worker is asked once for each variable of the model's own template, and always for a request's own template.

    Args:
        context: The request's context.
        options: The options of the chat, which change.
        worker: The worker with the model.

    Raises:
        LmwireError: The worker cannot use the template.
    """
    given: dict[str, Any] = options.get(_VARIABLES, {})
    known: set[str] = set() if "chat_template" in options else _known_variables.setdefault(worker, set())
    asked = given.keys() - known - _RESERVED
    if context.unknown_fields.are_refused or not 0 < len(asked) <= _MAX_ASKED:
        return
    template = {name: value for name, value in options.items() if name in ("chat_template", "tools")}
    accepted, unknown = await _sort_variables(worker, asked, template)
    if len(known) + len(accepted) <= _MAX_KNOWN:
        known |= accepted
    for name in given:
        if name in unknown:
            context.unknown_fields.ignore(_VARIABLES, name)
    options[_VARIABLES] = {name: value for name, value in given.items() if name not in unknown}


async def drop_unsupported_reasoning(
    context: RequestContext, options: dict[str, Any], worker: AsyncWorker, rename: RenameField
) -> None:
    """Remove reasoning from a chat's options if the model has none, and report it.

    Args:
        context: The request's context.
        options: The options of the chat, which change.
        worker: The worker with the model.
        rename: Maps field paths to those of the client.

    Raises:
        LmwireError: The worker has failed.
    """
    if options.get(_REASONING) != "on" or context.unknown_fields.are_refused:
        return
    if "chat_template" in options:
        can_reason = await _takes_reasoning(worker, chat_template=options["chat_template"])
    elif (can_reason := _can_reason.get(worker)) is None:
        can_reason = _can_reason[worker] = await _takes_reasoning(worker)
    if not can_reason:
        del options[_REASONING]
        options.pop("reasoning_effort", None)
        options.pop("reasoning_budget", None)
        parent, _, name = (rename(_REASONING) or _REASONING).rpartition(".")
        context.unknown_fields.ignore(parent, name)


async def _sort_variables(worker: AsyncWorker, names: Collection[str], template: Any) -> tuple[set[str], set[str]]:
    """Return the variables that the template has, and those that it does not have.

    A worker checks the names before it renders the template, so it needs no values. It reports one unknown variable
    at a time. Variables whose state stays open are in neither set.

    Args:
        worker: The worker with the model.
        names: The variables.
        template: The other options of the chat that choose the template.
    """
    remaining, unknown = set(names), set[str]()
    while remaining and len(unknown) < _MAX_UNKNOWN:
        field = await refused_field(worker, template_args=dict.fromkeys(remaining), **template)
        if field is None:
            return remaining, unknown
        name = field.removeprefix(f"{_VARIABLES}.")
        if name not in remaining:
            break  # another error, which the chat reports if it has it too
        unknown.add(name)
        remaining.remove(name)
    return set(), unknown


async def _takes_reasoning(worker: AsyncWorker, **template: Any) -> bool:
    # The chat reports an error about another field if it has it too.
    return await refused_field(worker, reasoning="on", **template) != _REASONING
