"""A completion as a stream: of each choice its text as it comes and how it ended, then the usage, and `[DONE]`."""

from collections.abc import Sequence

from msgspec import UNSET, UnsetType

from lmwire import CallPiece, Piece
from lmwire_protocol import events

from ...http.sse import DONE, TextEventTemplate, data_event
from ..usage import Usage, finish_reason, usage_of
from .logprobs import TokensSoFar
from .response_schema import Completion, CompletionChoice


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
        self._texts: dict[int, TextEventTemplate] = {}

    def pieces(self, number: int, batch: Sequence[Piece | CallPiece]) -> bytes:
        """The frames of what came together for the prompt of this number."""
        return b"".join([self._frames(number, piece) for piece in batch])

    def ended(self, number: int, result: events.ResultDone) -> bytes:
        """Those of its end. Raises ApiError where the server has cancelled it."""
        self._used.append(result.usage)
        choices: list[CompletionChoice] = []
        for place, choice in enumerate(result.choices or [result]):
            index = number * self._n + place
            reason = finish_reason(choice.finish_reason)
            choices += self._begin(number, index)
            choices.append(CompletionChoice(index=index, text="", finish_reason=reason))
        return b"".join([self._frame(choice) for choice in choices])

    def end(self) -> bytes:
        """The last ones."""
        if self._usage is UNSET:
            return DONE
        return data_event(self._chunk(None, usage_of(*self._used))) + DONE

    def _frames(self, number: int, piece: Piece | CallPiece) -> bytes:
        texts = self._texts.get(number * self._n + piece.choice)
        if texts and piece.text and not piece.logprobs:
            return texts.event(piece.text)
        return b"".join([self._frame(choice) for choice in self._choices(number, piece)])

    def _choices(self, number: int, piece: Piece | CallPiece) -> list[CompletionChoice]:
        """What goes into chunks."""
        index = number * self._n + piece.choice
        choices = self._begin(number, index)
        logprobs = self._tokens[index].add(piece.logprobs or ())
        if piece.text or logprobs.tokens:
            logprobs = logprobs if logprobs.tokens else None
            choices.append(CompletionChoice(index=index, text=piece.text, logprobs=logprobs))
        return choices

    def _begin(self, number: int, index: int) -> list[CompletionChoice]:
        if index in self._tokens:
            return []
        self._tokens[index] = TokensSoFar()
        self._texts[index] = TextEventTemplate(lambda text: self._chunk(CompletionChoice(index=index, text=text)))
        before = self._before[number]
        return [CompletionChoice(index=index, text=before)] if before else []

    def _frame(self, choice: CompletionChoice) -> bytes:
        return data_event(self._chunk(choice))

    def _chunk(self, choice: CompletionChoice | None, usage: Usage | None = None) -> Completion:
        return Completion(
            id=self._id,
            created=self._created,
            model=self._model,
            choices=[] if choice is None else [choice],
            usage=usage or self._usage,
        )
