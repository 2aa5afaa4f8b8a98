"""One choice's way from the model's tokens to what the scheduler is told of them.

A token becomes text (detokenizer), the text is told apart into reasoning, content and calls (answer), and what is text
of them ends before a stop string (scanner).
"""

import secrets
import string
from collections.abc import Callable
from typing import TYPE_CHECKING

from lmwire_protocol import RequestError
from lmwire_protocol.commands import Generation
from lmwire_protocol.events import Channel, FinishReason, Logprob

from ..engine.interface import Failed, RunnerEvent, TokenDelta, ToolCallDelta
from .batching import RowCache
from .logprob_attribution import Attribution
from .output_parsing import Answer, Text
from .output_parsing.detokenizer import Detokenizer
from .prefix_cache import CacheHit
from .sampling.logprobs import LogprobHandle
from .string_matcher import Scanner, Strings
from .structured_output import Constraint
from .tool_parsers import CallText

if TYPE_CHECKING:
    from ..multimodal.placeholders import ImageLayout


class Sequence:
    """A row of the batch.

    Args:
        key: The scheduler's name for the request.
        choice: Which of the request's answers it is.
        request: Its parameters.
        seed: The one in use for this choice.
        prompt: The prompt's tokens.
        max_tokens: What the request and the context allow.
        ends: The model's end-of-turn tokens.
        detokenizer: For this row.
        answer: For this row; None where all text is content.
        stops: The request's stop strings; None when it has none.
        constraint: What the answer must be, at its start; None for anything.
        describe: A token's log-probabilities for the host.
        images: Those in the prompt.
    """

    def __init__(
        self,
        key: int,
        choice: int,
        request: Generation,
        seed: int,
        *,
        prompt: list[int],
        max_tokens: int,
        ends: set[int],
        detokenizer: Detokenizer,
        answer: Answer | None,
        stops: Strings | None,
        constraint: Constraint | None,
        describe: Callable[[LogprobHandle], Logprob],
        images: "ImageLayout | None" = None,
    ) -> None:
        self.key = key
        self.choice = choice
        self.request = request
        self.seed = seed
        self.prompt = prompt
        self.media = images
        self.generated: list[int] = []
        self.uid: int | None = None
        """Its name in the batch; None while it waits for the prompt that it shares with another choice."""
        self.prefix_tokens = 0
        """Tokens of the prompt that were known when it entered the batch."""
        self.computed_tokens = 0
        self.keeper: Callable[[Sequence, list[int], RowCache], None] | None = None
        """Who is offered what was computed; None for nobody."""
        self.check: CacheHit | None = None
        """What was cached of the prompt, to be held against what is computed of it."""
        self._outcomes: list[RunnerEvent] = []
        self.ended = False
        self._whole_constraint = constraint
        self.constraint = constraint and constraint.fork()
        self._left = max_tokens
        self._ends = ends
        self._detokenizer = detokenizer
        self._answer = answer
        self._stops = stops
        self._scanner: Scanner | None = None
        self._channel: Channel = "content"
        """Whose text the scanner looks at."""
        self._call = False
        """Whether that is the text of a call which is none."""
        self._describe = describe
        self._attribution = Attribution() if request.logprobs else None
        self._one_call = not getattr(request, "parallel_tool_calls", True)

    @property
    def remaining_tokens(self) -> int:
        """Tokens that may still come, at most, besides an end-of-turn token."""
        return self._left

    @property
    def is_prefill_only(self) -> bool:
        """Whether it ends when its prompt is processed."""
        return self._left == 0

    @property
    def tokens(self) -> list[int]:
        """Prompt and answer so far."""
        return self.prompt + self.generated

    @property
    def length(self) -> int:
        """Tokens of prompt and answer so far."""
        return len(self.prompt) + len(self.generated)

    def cache_key(self, tokens: list[int]) -> list[int]:
        """Its first tokens, as what is kept of them is found by: another image makes them others."""
        return self.media.named(tokens) if self.media else tokens

    def restart(self) -> None:
        """Gets ready to enter a batch again, with the tokens so far."""
        self.uid = None
        self.prefix_tokens = 0
        if self._whole_constraint is not None:
            self.constraint = self._whole_constraint.fork(self.generated)

    def append_token(self, token: int, logprob: LogprobHandle | None, *, drafted: bool = False) -> bool:
        """Takes the next token. False: the choice has ended."""
        try:
            outcomes = self._piece(token, logprob, drafted)
        except Exception as error:  # its neighbours go on
            problem = f"token {token} cannot be turned into text: {type(error).__name__}: {error}"
            outcomes = self._fail("engine_error", problem)
        if self.constraint is not None and self.constraint.error is not None and not self.ended:
            field = "tools" if self.request.format is None else "format"  # the grammar is the request's
            outcomes = self._fail("invalid_request", f"{field}: {self.constraint.error}", field)
        self._outcomes += outcomes
        return not self.ended

    def keep(self, tokens: list[int], cache: RowCache) -> None:
        """Offers what was computed for the tokens."""
        if self.keeper is not None:
            self.keeper(self, tokens, cache)

    def take_events(self) -> list[RunnerEvent]:
        """What it got since the last call."""
        outcomes, self._outcomes = self._outcomes, []
        return outcomes

    def finish(self, finish_reason: FinishReason | None) -> list[RunnerEvent]:
        """The last outcomes, with the text that was held back."""
        last = TokenDelta(self.key, choice=self.choice)
        return self._close(finish_reason, last)

    # What a token gives.

    def _piece(self, token: int, logprob: LogprobHandle | None, drafted: bool) -> list[RunnerEvent]:
        piece = TokenDelta(self.key, generated=1, choice=self.choice, drafted=int(drafted))
        if self._answer is not None:
            piece.channel = self._answer.channel
        if token in self._ends:
            piece.reasoning_tokens = int(piece.channel == "reasoning")
            return self._close("stop", piece)
        return self._show(token, logprob, piece)

    def _show(self, token: int, logprob: LogprobHandle | None, piece: TokenDelta) -> list[RunnerEvent]:
        text = self._detokenizer.add(token)
        self._left -= 1
        self.generated.append(token)
        if self._attribution is None or logprob is None:
            piece.token_ids.append(token)
        else:
            self._attribution.add(self._describe(logprob), text)
        outcomes: list[RunnerEvent] = [piece]
        end = self._add(outcomes, self._split(text))
        if self._answer is not None and "reasoning" in (piece.channel, self._answer.channel):
            piece.reasoning_tokens = 1
        if end is not None:
            return self._finish(outcomes, *end)
        if self._left == 0:
            return self._close("length", *outcomes)
        return outcomes

    def _close(self, finish_reason: FinishReason | None, *before: RunnerEvent) -> list[RunnerEvent]:
        """Flushes what is held back and finishes."""
        outcomes = list(before)
        rest = self._detokenizer.flush()
        if self._attribution is not None:
            self._attribution.flush(rest)
        end = self._add(outcomes, self._split(rest))
        if end is None and self._answer is not None:
            end = self._add(outcomes, self._answer.end(finish_reason == "stop"))
        if end is None:
            self._flush(outcomes)
            called = finish_reason == "stop" and self._answer is not None and self._answer.calls
            end = ("tool_calls" if called else finish_reason, None)
        return self._finish(outcomes, *(end if finish_reason else (None, None)))

    def _finish(
        self, outcomes: list[RunnerEvent], finish_reason: FinishReason | None, stop: str | None
    ) -> list[RunnerEvent]:
        last = outcomes[-1]
        if not isinstance(last, TokenDelta):
            last = TokenDelta(self.key, choice=self.choice)
            outcomes.append(last)
        if self._attribution is not None:
            _attach(last, self._attribution.end())
        last.finish_reason = finish_reason
        last.stop = stop
        self.ended = True
        return outcomes

    def _split(self, text: str) -> list[Text | CallText]:
        if self._answer is not None:
            return self._answer.push(text)
        return [Text("content", text)] if text else []

    def _add(self, outcomes: list[RunnerEvent], parts: list[Text | CallText]) -> tuple[FinishReason, str | None] | None:
        """Adds what is certain of the parts; finish_reason and stop string when something in them ends the choice."""
        for part in parts:
            if isinstance(part, CallText):
                self._flush(outcomes)
                call_id = part.call_id
                if part.name is not None and call_id is None:
                    call_id = _new_call_id()  # most models give their calls none
                call = ToolCallDelta(
                    self.key, part.index, self.choice, call_id, part.name, part.arguments, part.complete
                )
                outcomes.append(call)
                if part.complete and self._one_call:
                    return "tool_calls", None
                continue
            if (part.channel, part.call) != (self._channel, self._call):
                self._flush(outcomes)
                self._channel, self._call = part.channel, part.call
            if self._attribution is not None:
                self._attribution.take(part.text, self._attribution.length if self._answer is None else part.end)
            text, stop = part.text, None
            if self._stops is not None and not part.call:
                self._scanner = self._scanner or Scanner(self._stops)
                text, stop = self._scanner.push(text)
                if stop is not None and self.request.include_stop:
                    text += stop
            self._say(outcomes, text)
            if stop is not None:
                if self._attribution is not None:
                    self._attribution.drop()
                return "stop", stop
        return None

    def _flush(self, outcomes: list[RunnerEvent]) -> None:
        """What might have become a stop string, and cannot any more."""
        if self._scanner is not None:
            self._say(outcomes, self._scanner.flush())

    def _say(self, outcomes: list[RunnerEvent], text: str) -> None:
        """Adds text of the channel at hand, to the last piece where that is of the same channel."""
        if not text:
            return
        last = outcomes[-1] if outcomes else None
        if not (isinstance(last, TokenDelta) and self._fits(last)):
            outcomes.append(last := TokenDelta(self.key, choice=self.choice))
        last.channel, last.is_call_text = self._channel, self._call
        last.text += text
        if self._attribution is not None:
            _attach(last, self._attribution.send(text, (self._channel, self._call)))

    def _fits(self, piece: TokenDelta) -> bool:
        """Whether text of the channel at hand can be added to a piece."""
        if (piece.channel, piece.is_call_text) == (self._channel, self._call):
            return True
        return not (piece.text or piece.token_ids)

    def _fail(self, code: str, problem: str, field: str | None = None) -> list[RunnerEvent]:
        self.ended = True
        return [Failed(self.key, RequestError(code, problem, field=field))]


def _attach(piece: TokenDelta, logprobs: list[Logprob]) -> None:
    """Add tokens to a piece."""
    if logprobs:
        piece.token_ids += [logprob.token_id for logprob in logprobs]
        piece.logprobs = [*(piece.logprobs or ()), *logprobs]


def _new_call_id() -> str:
    """Nine letters and digits, which every chat template takes back: Mistral's insist on that."""
    return "".join(secrets.choice(string.ascii_letters + string.digits) for _ in range(9))
