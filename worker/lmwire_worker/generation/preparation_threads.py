"""Threads that prepare requests beside the runner."""

from collections.abc import Callable
from functools import partial
from typing import Any, Final, Literal

from lmwire_protocol import Chat, Generate, Tokenize

from ..engine.preparation import Prepared, Preparer
from ..media import find_media_refs
from ..prompts.builder import Prompt
from .media_backend import MediaBackend
from .request_preparation import PreparedRequest, RequestPreparer
from .structured_output import is_constrained

WorkKind = Literal["plain", "hard", "large"]
THREAD_COUNTS: Final[dict[str, int]] = {"plain": 1, "hard": 2, "large": 1}
"""Threads for each kind of work. Plain requests are prepared in order. Hard ones have a grammar or a chat template of
their own. Large ones have much text, and take time and memory."""
LARGE_BYTES: Final = 2**18
"""Text from which a request is large, in bytes."""


class PreparationThreads:
    """Prepares requests in threads.

    Args:
        preparer: Prepares one request.
        media: Reads media; None for a model without.
    """

    def __init__(self, preparer: RequestPreparer, media: MediaBackend | None) -> None:
        self._preparer = preparer
        self._media = media
        self._threads = Preparer(THREAD_COUNTS, scarce=("hard",))
        self._probe = self._threads.start("plain", lambda media: preparer.probe_template(), ready=lambda: None)
        """Runs while the model warms up."""

    def start(
        self, request: Generate | Chat | Tokenize, ready: Callable[[], None], size: int
    ) -> Prepared[PreparedRequest] | Prepared[Prompt]:
        """Start to prepare a request; see `ModelRunner.prepare`.

        Args:
            request: The request.
            ready: Called from a thread when the request is prepared.
            size: Size of the request's line, in bytes.
        """
        is_tokenize = isinstance(request, Tokenize)
        work: Callable[..., Any] = self._preparer.read_prompt if is_tokenize else self._preparer.prepare
        return self._threads.start(_kind(request, size), partial(work, request), ready, partial(self._gather, request))

    def close(self) -> None:
        """Stop the threads. No request may be active."""
        self._threads.close()

    def _gather(self, request: Generate | Chat | Tokenize, ready: Callable[[], None]) -> Any:
        return self._media.prefetch_media(request, ready) if self._media else None


def _kind(request: Generate | Chat | Tokenize, size: int) -> WorkKind:
    """Return the kind of work that a request is, so that slow requests do not delay quick ones."""
    if size > LARGE_BYTES and size - sum(len(item.media.data or "") for item in find_media_refs(request)) > LARGE_BYTES:
        return "large"
    has_template = not isinstance(request, Generate) and request.chat_template is not None
    return "hard" if has_template or is_constrained(request) else "plain"
