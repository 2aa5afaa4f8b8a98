"""Encoder of a streamed completion: the text and finish reason of each choice, then the usage and `[DONE]`."""

from collections.abc import Sequence

from msgspec import UNSET, UnsetType

from lmwire import TokenDelta, ToolCallDelta
from lmwire_protocol import events

from ...http.sse import DONE, TextEventTemplate, data_event
from ...inference.generation import finish_reason
from ..request_fields import UsageChunk
from ..response_fields import PromptProgress, ResponseIdentity, Usage, UsageSoFar, total_usage
from .response import Completion, CompletionChoice, LogprobsEncoder


class CompletionStreamEncoder:
    """Encoder of one stream.

    Args:
        identity: The completion's id, time, model and fingerprint.
        n: Number of choices for each prompt.
        before: Text before each prompt's choices.
        usage: The form of the usage at the end of the stream; None without it.
        so_far: Counts the tokens for the usage in each chunk; None without it.
    """

    def __init__(
        self,
        identity: ResponseIdentity,
        *,
        n: int,
        before: Sequence[str],
        usage: UsageChunk | None,
        so_far: UsageSoFar | None,
    ) -> None:
        self._identity = identity
        self._n, self._before = n, before
        self._usage_chunk = usage
        self._usage: UnsetType | None = None if usage else UNSET
        self._so_far = so_far
        self._last_choice: CompletionChoice | None = None
        self._ended: list[events.ResultDone] = []
        self._tokens: dict[int, LogprobsEncoder] = {}
        self._texts: dict[int, TextEventTemplate] = {}

    def deltas(self, number: int, batch: Sequence[TokenDelta | ToolCallDelta]) -> bytes:
        """Return the chunks for deltas that came together.

        Args:
            number: The number of their prompt.
            batch: The deltas.
        """
        return b"".join([self._frames(number, delta) for delta in batch])

    def waiting(self, progress: PromptProgress | None) -> bytes:
        """Return a chunk with an empty text, for a stream that has nothing else to send."""
        chunk = self._chunk(CompletionChoice(index=0, text=""))
        chunk.prompt_progress = progress or UNSET
        return data_event(chunk)

    def finish_prompt(self, number: int, result: events.ResultDone) -> bytes:
        """Return the chunks that end a prompt's choices.

        Args:
            number: The number of the prompt.
            result: The worker's result.

        Raises:
            ApiError: The server has cancelled the answer.
        """
        self._ended.append(result)
        if self._so_far:
            self._so_far.note_end(number, result.usage)
        choices: list[CompletionChoice] = []
        for place, choice in enumerate(result.choices or [result]):
            index = number * self._n + place
            reason = finish_reason(choice.finish_reason)
            choices += self._begin(number, index)
            self._last_choice = CompletionChoice(index=index, text="", finish_reason=reason)
            choices.append(self._last_choice)
        return b"".join([self._frame(choice) for choice in choices])

    def end(self) -> bytes:
        """Return the last chunks."""
        if self._usage is UNSET:
            return DONE
        repeated = self._last_choice if self._usage_chunk == "choice" else None
        return data_event(self._chunk(repeated, total_usage(*self._ended))) + DONE

    def _frames(self, number: int, delta: TokenDelta | ToolCallDelta) -> bytes:
        if self._so_far:
            self._so_far.note_delta(number, delta)
        texts = self._texts.get(number * self._n + delta.choice)
        if texts and delta.text and not (delta.logprobs or self._so_far):
            return texts.event(delta.text)
        return b"".join([self._frame(choice) for choice in self._choices(number, delta)])

    def _choices(self, number: int, delta: TokenDelta | ToolCallDelta) -> list[CompletionChoice]:
        """Return the content of the chunks for a delta."""
        index = number * self._n + delta.choice
        choices = self._begin(number, index)
        logprobs = self._tokens[index].add(delta.logprobs or ())
        if delta.text or logprobs.tokens:
            logprobs = logprobs if logprobs.tokens else None
            choices.append(CompletionChoice(index=index, text=delta.text, logprobs=logprobs))
        return choices

    def _begin(self, number: int, index: int) -> list[CompletionChoice]:
        if index in self._tokens:
            return []
        self._tokens[index] = LogprobsEncoder()
        self._texts[index] = TextEventTemplate(lambda text: self._chunk(CompletionChoice(index=index, text=text)))
        before = self._before[number]
        return [CompletionChoice(index=index, text=before)] if before else []

    def _frame(self, choice: CompletionChoice) -> bytes:
        return data_event(self._chunk(choice))

    def _chunk(self, choice: CompletionChoice | None, usage: Usage | None = None) -> Completion:
        return Completion(
            **self._identity._asdict(),
            choices=[] if choice is None else [choice],
            usage=usage or (self._so_far.usage() if self._so_far else self._usage),
        )
