"""Template variables that a chat template does not have. Over HTTP they are ignored, as unknown fields are."""

from typing import Any, Final
from weakref import WeakKeyDictionary

from lmwire import AsyncWorker, MessageDict, RequestFailed

from ..http.context import RequestContext

_RESERVED: Final = frozenset({"messages", "tools", "add_generation_prompt"})
"""Variables that fields of a request set. The worker refuses them, and so does the server."""
_FIELD: Final = "template_args"
_MAX_UNKNOWN: Final = 16
"""Most variables of a request that are ignored. With more, the request is refused."""
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
    if context.unknown_fields.are_refused or not given.keys() - known - _RESERVED:
        return
    accepted, unknown = await _ask(worker, options)
    if len(known) + len(accepted) <= _MAX_KNOWN:
        known |= accepted
    for name in unknown:
        context.unknown_fields.ignore(_FIELD, name)
    options[_FIELD] = {name: value for name, value in given.items() if name not in unknown}


async def _ask(worker: AsyncWorker, options: dict[str, Any]) -> tuple[set[str], list[str]]:
    """Return the names of the variables that the template has, and of those that it does not have.

    A worker reports one unknown variable at a time. Variables whose state stays open are in neither collection.
    """
    template: Any = {name: value for name, value in options.items() if name in ("chat_template", "tools")}
    remaining = {name: value for name, value in options[_FIELD].items() if name not in _RESERVED}
    unknown: list[str] = []
    while remaining and len(unknown) < _MAX_UNKNOWN:
        try:
            await worker.count_tokens(_MESSAGES, template_args=remaining, **template)
        except RequestFailed as error:
            name = (error.field or "").removeprefix(f"{_FIELD}.")
            if name not in remaining:
                break  # another error, which the chat reports if it has it too
            unknown.append(name)
            del remaining[name]
        else:
            return set(remaining), unknown
    return set(), unknown
