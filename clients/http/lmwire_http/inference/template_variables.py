"""Template variables that a chat template does not have. Over HTTP they are ignored, and the log names them."""

import logging
from typing import Any, Final
from weakref import WeakKeyDictionary

from lmwire import AsyncWorker, ChatOptions, MessageDict, RequestFailed

from ..http.context import RequestContext
from ..telemetry.logs import log_facts

_RESERVED: Final = frozenset({"messages", "tools", "add_generation_prompt"})
"""Variables that fields of a request set. The worker refuses them, and so does the server."""
_FIELD: Final = "template_args."
_MAX_UNKNOWN: Final = 16
"""Most variables of a request that are ignored. With more, the request is refused."""
_MAX_KNOWN: Final = 256
_MESSAGES: Final[list[MessageDict]] = [{"role": "user", "content": "."}]
_known: Final[WeakKeyDictionary[AsyncWorker, set[str]]] = WeakKeyDictionary()
"""Variables that the template of each worker's model has, as far as requests have used them."""


async def drop_unknown_variables(context: RequestContext, options: ChatOptions, worker: AsyncWorker) -> None:
    """Remove template variables from a chat's options that the chat template does not have.

    Only the worker knows the template. It is asked once for each variable of the model's own template, and always for
    a request's own template.

    Args:
        context: The request's context.
        options: The options of the chat, which change.
        worker: The worker with the model.

    Raises:
        LmwireError: The worker cannot use the template.
    """
    given = options.get("template_args", {})
    known: set[str] = set() if "chat_template" in options else _known.setdefault(worker, set())
    if not given.keys() - known - _RESERVED:
        return
    accepted, unknown = await _ask(worker, options)
    if len(known) + len(accepted) <= _MAX_KNOWN:
        known |= accepted
    for name in unknown:
        facts = {"variable": name[:200], "request_id": context.id}
        log_facts(logging.WARNING, "the chat template does not have a variable of a request; it is ignored", facts)
    options["template_args"] = {name: value for name, value in given.items() if name not in unknown}


async def _ask(worker: AsyncWorker, options: ChatOptions) -> tuple[set[str], set[str]]:
    """Return the names of the variables that the template has, and of those that it does not have.

    A worker reports one unknown variable at a time. Variables whose state stays open are in neither set.
    """
    template: Any = {name: value for name, value in options.items() if name in ("chat_template", "tools")}
    remaining = {name: value for name, value in options.get("template_args", {}).items() if name not in _RESERVED}
    unknown: set[str] = set()
    while remaining and len(unknown) < _MAX_UNKNOWN:
        try:
            await worker.count_tokens(_MESSAGES, template_args=remaining, **template)
        except RequestFailed as error:
            name = (error.field or "").removeprefix(_FIELD)
            if name not in remaining:
                break  # another error, which the chat reports if it has it too
            unknown.add(name)
            del remaining[name]
        else:
            return set(remaining), unknown
    return set(), unknown
