"""Capabilities of models in Ollama's terms.

A loaded model is asked. Of a model on this machine that is not loaded, the kind and the chat template decide.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal, TypeAlias
from weakref import WeakKeyDictionary

from lmwire import AsyncWorker

from ..http.context import RequestContext
from ..inference.template_support import refused_field
from ..pool import ServedModel

Capability: TypeAlias = Literal["completion", "tools", "thinking", "vision", "audio", "insert", "embedding"]

_NAMES: Final[Mapping[str, Capability]] = {
    "chat": "completion",
    "images": "vision",
    "sounds": "audio",
    "suffix": "insert",
    "embed": "embedding",
}
"""Ollama's name for each capability of a loaded model."""
_PROBES: Final[Mapping[Capability, Any]] = {
    "tools": {"tools": [{"type": "function", "function": {"name": "probe", "description": "", "parameters": {}}}]},
    "thinking": {"reasoning": "on"},
}
"""Options that a model without the capability refuses."""
_REASONING_MARKS: Final = ("enable_thinking", "reasoning_effort", "<think>", "<|channel|>analysis")
"""Texts in the chat templates of models that reason."""
_known: Final[WeakKeyDictionary[AsyncWorker, list[Capability]]] = WeakKeyDictionary()
"""Capabilities of each worker's model."""


async def find_capabilities(context: RequestContext, served: ServedModel, template: str) -> list[Capability]:
    """Return the capabilities of a model; empty if they are unknown before the first load.

    Args:
        context: The request's context.
        served: The model.
        template: Its chat template; empty if that is unknown.

    Raises:
        ApiError: The model has too many requests.
    """
    if served.loaded is None:
        return list(_expected(served, template))
    async with context.state.pool.lease(served.id) as lease:
        if lease.worker not in _known:
            able = lease.model.capabilities
            found: list[Capability] = [name for capability, name in _NAMES.items() if capability in able]
            for name, options in _PROBES.items() if "completion" in found else ():
                if await refused_field(lease.worker, **options) is None:
                    found.append(name)
            _known[lease.worker] = found
        return _known[lease.worker]


def _expected(served: ServedModel, template: str) -> Iterator[Capability]:
    if served.kind == "embeddings":
        yield "embedding"
    elif served.kind in ("text", "vision"):
        yield "completion"
        if served.kind == "vision":
            yield "vision"
        if "tools" in template:
            yield "tools"
        if any(mark in template for mark in _REASONING_MARKS):
            yield "thinking"
