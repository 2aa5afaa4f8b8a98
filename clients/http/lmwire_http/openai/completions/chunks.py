"""A completion as a stream: of each choice its text as it comes and how it ended, then the usage, and `[DONE]`."""

from collections.abc import Iterator, Sequence

from msgspec import UNSET, UnsetType

from lmwire import CallPiece, Piece
from lmwire_protocol import events

from ..frames import DONE, data
from ..results import Usage, finish_reason, usage_of
from .logprobs import TokensSoFar
from .reply import Completion, CompletionChoice


class CompletionChunks:
    """Makes a stream's frames.

    Args:
        n: The choices of each prompt.
        before: What to put in front of the choices of each prompt, by its number; empty for nothing.
        usage: Whether to end with the usage.
    """

    def __init__(self, id: str, created: int, model: str, *, n: int, before: Sequence[str], usage: bool) -> None:
        self._id, self._created, self._model = id, created, model
        self._n, self._before = n, before
        self._usage: UnsetType | None = None if usage else UNSET
        self._used: list[events.Usage] = []
        self._tokens: dict[int, TokensSoFar] = {}

    def pieces(self, number: int, batch: Sequence[Piece | CallPiece]) -> bytes:
        """The frames of what came together for the prompt of this number."""
        return b"".join(frame for piece in batch for frame in self._frames(number, piece))

    def ended(self, number: int, result: events.ResultDone) -> bytes:
        """Those of its end. Raises ApiError where the server has cancelled it."""
        self._used.append(result.usage)
        frames: list[bytes] = []
        for place, choice in enumerate(result.choices or [result]):
            index = number * self._n + place
            reason = finish_reason(choice.finish_reason)
            frames += self._begin(number, index)
            frames.append(self._frame(CompletionChoice(index=index, text="", finish_reason=reason)))
        return b"".join(frames)

    def end(self) -> bytes:
        """The last ones."""
        if self._usage is UNSET:
            return DONE
        return data(self._chunk([], usage_of(*self._used))) + DONE

    def _frames(self, number: int, piece: Piece | CallPiece) -> Iterator[bytes]:
        index = number * self._n + piece.choice
        yield from self._begin(number, index)
        if piece.text or piece.logprobs:
            logprobs = self._tokens[index].add(piece.logprobs) if piece.logprobs else None
            yield self._frame(CompletionChoice(index=index, text=piece.text, logprobs=logprobs))

    def _begin(self, number: int, index: int) -> Iterator[bytes]:
        if index not in self._tokens:
            self._tokens[index] = TokensSoFar()
            if before := self._before[number]:
                yield self._frame(CompletionChoice(index=index, text=before))

    def _frame(self, choice: CompletionChoice) -> bytes:
        return data(self._chunk([choice], self._usage))

    def _chunk(self, choices: list[CompletionChoice], usage: Usage | UnsetType | None) -> Completion:
        return Completion(id=self._id, created=self._created, model=self._model, choices=choices, usage=usage)
