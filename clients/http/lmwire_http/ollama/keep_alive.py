"""The effect of `keep_alive` after a request."""

from collections.abc import Generator
from contextlib import contextmanager

from ..http.context import RequestContext


@contextmanager
def keeping_alive(context: RequestContext, idle_s: float | None) -> Generator[None]:
    """Set how long the model that the block uses stays in memory after it.

    Args:
        context: The request's context, which the block gives the model's id.
        idle_s: The time in seconds; None to leave it as it is.
    """
    try:
        yield
    finally:
        if idle_s is not None:
            context.state.pool.set_idle_limit(context.model, idle_s)
