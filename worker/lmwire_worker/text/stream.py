"""One request's way from the model's tokens to what the scheduler is told of them."""

from lmwire_protocol import RequestError
from lmwire_protocol.commands import Generation

from ..lane import Failed, Piece
from .detokenizer import Detokenizer
from .stops import StopScanner


class Stream:
    """A row of the batch.

    Args:
        key: The scheduler's name for the request.
        request: Its parameters.
        seed: The one in use.
        max_tokens: What the request and the context allow.
        ends: The model's end-of-turn tokens.
        detokenizer: For this row.
        stops: For this row; None when it has no stop strings.
    """

    def __init__(
        self,
        key: int,
        request: Generation,
        seed: int,
        *,
        max_tokens: int,
        ends: set[int],
        detokenizer: Detokenizer,
        stops: StopScanner | None,
    ) -> None:
        self.key = key
        self.request = request
        self.seed = seed
        self.uid = -1
        self.prefilled = 0
        self.outcome: Piece | Failed = Piece(key)
        """Of the newest step."""
        self.ended = False
        self._left = max_tokens
        self._ends = ends
        self._detokenizer = detokenizer
        self._stops = stops

    @property
    def only_prefills(self) -> bool:
        """Whether it ends when its prompt is processed."""
        return self._left == 0

    def push(self, token: int) -> bool:
        """Takes the next token and sets `outcome`. False: the request has ended."""
        try:
            self.outcome = self._piece(token)
            self.ended = self.outcome.finish_reason is not None
        except Exception as error:  # its neighbours go on
            problem = f"Token {token} cannot be turned into text: {type(error).__name__}: {error}"
            self.outcome = Failed(self.key, RequestError("engine_error", problem))
            self.ended = True
        return not self.ended

    def _piece(self, token: int) -> Piece:
        if token in self._ends:
            return self.end("stop", generated=1)
        self._left -= 1
        text = self._detokenizer.add(token)
        stop = None
        if self._stops is not None:
            text, stop = self._stops.push(text)
        if stop is not None:
            return Piece(self.key, text, [token], 1, "stop", stop)
        if self._left == 0:
            last = self.end("length", generated=1)
            last.text = text + last.text
            last.token_ids.append(token)
            return last
        return Piece(self.key, text, [token], 1)

    def end(self, finish_reason: str | None, generated: int = 0) -> Piece:
        """The last piece, with the text that was held back."""
        text = self._detokenizer.flush()
        stop = None
        if self._stops is not None:
            text, stop = self._stops.push(text)
            text = text if stop else text + self._stops.flush()
        return Piece(self.key, text, [], generated, finish_reason, stop)
