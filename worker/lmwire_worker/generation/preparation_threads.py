"""Which threads prepare a text lane's requests."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal

from lmwire_protocol import Chat, Generate, Tokenize

from ..engine.preparation import Prepared, Preparer
from ..media import items_of
from ..prompts.builder import Prompt
from .request_preparation import PreparedRequest, RequestPreparer
from .structured_output import is_constrained

if TYPE_CHECKING:
    from ..multimodal.processor import Sight

WorkKind = Literal["plain", "hard", "large"]
THREAD_COUNTS: Final[dict[str, int]] = {"plain": 1, "hard": 2, "large": 1}
"""Plain requests are prepared in their order. Two with a grammar or a template of their own are prepared at once, and
one at a time with so much text that it takes time and memory."""
LARGE_BYTES: Final = 2**18


class PreparationThreads:
    """Prepares requests beside a lane.

    Args:
        intake: Reads requests.
        sight: Of a model that sees.
    """

    def __init__(self, intake: RequestPreparer, sight: "Sight | None") -> None:
        self._intake = intake
        self._sight = sight
        self._preparer = Preparer(THREAD_COUNTS, scarce=("hard",))
        self._first = self._preparer.start("plain", lambda media: intake.probe_template(), ready=lambda: None)
        """Runs while the model is warmed up."""

    def start(
        self, request: Generate | Chat | Tokenize, ready: Callable[[], None], size: int
    ) -> Prepared[PreparedRequest] | Prepared[Prompt]:
        """Start to prepare a request; see `ModelRunner.prepare`."""
        work: Callable[..., Any] = self._intake.read_prompt if isinstance(request, Tokenize) else self._intake.prepare
        return self._preparer.start(_kind(request, size), partial(work, request), ready, partial(self._look, request))

    def close(self) -> None:
        """End the threads. No request is held."""
        self._preparer.close()

    def _look(self, request: Generate | Chat | Tokenize, done: Callable[[], None]) -> Any:
        return self._sight.gather(request, done) if self._sight else None


def _kind(request: Generate | Chat | Tokenize, size: int) -> WorkKind:
    """Return which threads prepare a request: one that may take long is not to hold up those that do not."""
    if size > LARGE_BYTES and size - sum(len(item.media.data or "") for item in items_of(request)) > LARGE_BYTES:
        return "large"
    given = not isinstance(request, Generate) and request.chat_template is not None
    return "hard" if given or is_constrained(request) else "plain"
