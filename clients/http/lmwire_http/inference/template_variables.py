"""Template variables that a chat template does not have. Over HTTP they are ignored, as unknown fields are."""

from collections.abc import Collection
from typing import Any, Final
from weakref import WeakKeyDictionary

from lmwire import AsyncWorker, MessageDict, RequestFailed

from ..http.context import RequestContext

_RESERVED: Final = frozenset({"messages", "tools", "add_generation_prompt"})
"""Variables that fields of a request set. The worker refuses them, and so does the server."""
_FIELD: Final = "template_args"
_MAX_UNKNOWN: Final = 16
"""Most variables of a request that are ignored. With more, the request is refused."""
_MAX_ASKED: Final = 64
"""Most variables that the worker is asked about. With more, the request goes to the worker as it is."""
_MAX_KNOWN: Final = 256
_MESSAGES: Final[list[MessageDict]] = [{"role": "user", "content": "."}]
_known: Final[WeakKeyDictionary[AsyncWorker, set[str]]] = WeakKeyDictionary()
"""Variables that the template of each worker's model has, as far as requests have used them."""


async def drop_unknown_variables(context: RequestContext, options: dict[str, Any], worker: AsyncWorker) -> None:
    """Remove template variables from a chat's options that the chat template does not have, and report them.

    Only the worker knows the template. It is asked once for each variable of the model's own template, and always for
    a request's own template. A server that refuses unknown fields leaves all to the worker, which refuses them.

    Args:
        context: The request's context.
        options: The options of the chat, which change.
        worker: The worker with the model.

    Raises:
        LmwireError: The worker cannot use the template.
    """
    given: dict[str, Any] = options.get(_FIELD, {})
    known: set[str] = set() if "chat_template" in options else _known.setdefault(worker, set())
    asked = given.keys() - known - _RESERVED
    if context.unknown_fields.are_refused or not 0 < len(asked) <= _MAX_ASKED:
        return
    template = {name: value for name, value in options.items() if name in ("chat_template", "tools")}
    accepted, unknown = await _ask(worker, asked, template)
    if len(known) + len(accepted) <= _MAX_KNOWN:
        known |= accepted
    for name in given:
        if name in unknown:
            context.unknown_fields.ignore(_FIELD, name)
    options[_FIELD] = {name: value for name, value in given.items() if name not in unknown}


async def _ask(worker: AsyncWorker, names: Collection[str], template: Any) -> tuple[set[str], set[str]]:
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
        try:
            await worker.count_tokens(_MESSAGES, template_args=dict.fromkeys(remaining), **template)
        except RequestFailed as error:
            name = (error.field or "").removeprefix(f"{_FIELD}.")
            if name not in remaining:
                break  # another error, which the chat reports if it has it too
            unknown.add(name)
            remaining.remove(name)
        else:
            return remaining, unknown
    return set(), unknown
