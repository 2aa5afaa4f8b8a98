"""Prepare a request in threads beside the runner: render and tokenize its prompt, and compile its grammar."""

import contextlib
from array import array
from collections import abc
from collections.abc import Callable
from functools import cache, cached_property, partial
from typing import TYPE_CHECKING, Any, Final, Literal

from msgspec import Struct

from lmwire_protocol import Chat, Generate, RequestError, Tokenize, limits
from lmwire_protocol.commands import Generation

from ..engine.interface import ModelInfo, PreparedPrompt
from ..engine.preparation import PreparationThreads, Prepared
from ..media import find_media_refs
from ..models.tokenizer import Tokenizer
from ..multimodal.placeholders import MediaLayout
from ..output_parsing import REASONING, OutputParser, Syntax, start_state
from ..prompts.builder import Prompt, build_prompt
from ..prompts.chat_template import select_template
from ..prompts.infill import InfillPrompts, find_infill_format
from ..prompts.model_syntax import find_syntax
from ..prompts.template_traits import probe_template
from ..prompts.tokenization import Encoder
from ..prompts.truncation import truncate_prompt
from ..text_stream.detokenizer import make_detokenizers, token_bytes
from ..text_stream.string_matcher import StringAutomaton
from .banned_strings import BannedStrings
from .output_processor import OutputProcessor
from .request_table import Sequence
from .sampling.logprobs import LogprobFormatter
from .structured_output.constraint import Constraint

if TYPE_CHECKING:
    from ..multimodal.processor import MultimodalProcessor
    from .sampling.dry import Repetitions
    from .structured_output.constraint_factory import ConstraintFactory

WorkKind = Literal["plain", "hard", "large"]
THREAD_COUNTS: Final[dict[str, int]] = {"plain": 1, "hard": 2, "large": 1}
"""Threads for each kind of work. Plain requests are prepared in order. Hard ones have a grammar or a chat template of
their own. Large ones have much text, and take time and memory."""
LARGE_BYTES: Final = 2**18
"""Text from which a request is large, in bytes."""


class PreparedRequest(Struct, frozen=True):
    """A request that is ready to be admitted."""

    prompt: "array[int]"
    """The prompt's tokens, after truncation."""
    opening: str
    """See `Prompt.opening`."""
    media: MediaLayout | None
    """The media input in the prompt; None without any."""
    constraint: Constraint | None
    """The grammar of the answer; None for free text."""


class RequestPreparer:
    """Prepares the requests of one model, in threads of its own. `prepare` and `read_prompt` are safe in any thread.

    Args:
        tokenizer: The model's tokenizer.
        model: The model's description.
        max_bytes: Memory that the model and its requests may take, in bytes.
        media: Expands media in prompts; None for a model without.
        syntax: The model's output syntax; None to find it.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        model: ModelInfo,
        max_bytes: int,
        media: "MultimodalProcessor | None" = None,
        syntax: Syntax | None = None,
    ) -> None:
        self.eos_token_ids = {token for token in tokenizer.eos_token_ids if token < model.vocab_size}
        """The model's end-of-turn tokens."""
        infill = find_infill_format(tokenizer, model.vocab_size)
        self.end_token_ids = self.eos_token_ids | (infill.end_token_ids if infill else set())
        """The tokens that end a turn or a gap."""
        self.xtc_special_tokens = self.end_token_ids.union(tokenizer.encode("\n", add_special_tokens=False))
        """Tokens that XTC never excludes. Without them, an answer could neither end nor start a line when that is
        almost certain."""
        self._model = model
        self._media = media
        self.tokenizer = tokenizer
        self._encoder = Encoder(tokenizer, model.context_len, max_bytes)
        self._infill = InfillPrompts(infill, self._encoder) if infill else None
        self._new_detokenizer = make_detokenizers(tokenizer)
        self._token_bytes = cache(token_bytes(tokenizer))
        self.format_logprob = LogprobFormatter(self._token_bytes)
        """Turns log-probabilities into the form of the protocol."""
        self._syntax = syntax or find_syntax(tokenizer, model.model_type)
        self._threads = PreparationThreads(THREAD_COUNTS, scarce=("hard",))
        self._probe = self._threads.start("plain", lambda media: self._probe_template(), ready=lambda: None)
        """Runs while the model warms up."""

    def start(
        self,
        request: Generate | Chat | Tokenize,
        ready: Callable[[], None],
        size: int,
        share: Callable[[PreparedPrompt], None] | None = None,
        prompt: PreparedPrompt | None = None,
    ) -> Prepared[PreparedRequest] | Prepared[Prompt]:
        """Start to prepare a request; see `ModelRunner.prepare`.

        Args:
            request: The request.
            ready: Called from a thread when the request is prepared.
            size: Size of the request's line, in bytes.
            share: See `RankRunner.prepare`.
            prompt: See `RankRunner.prepare`.
        """
        work: Any = partial(self.read_prompt, request)
        if not isinstance(request, Tokenize):
            work = partial(self._prepare, request, share, prompt)
        return self._threads.start(_kind(request, size), work, ready, partial(self._gather, request))

    def close(self) -> None:
        """Stop the threads. No request may be active."""
        self._threads.close()

    def _gather(self, request: Generate | Chat | Tokenize, ready: Callable[[], None]) -> Any:
        return self._media.prefetch_media(request, ready) if self._media else None

    def _probe_template(self) -> None:
        """Find out what the model's chat template supports, so that the first chat need not wait for it."""
        with contextlib.suppress(RequestError):
            probe_template(select_template(self.tokenizer, None, tools=False))

    def read_prompt(self, request: Generate | Chat | Tokenize, media: abc.Sequence[Any] = ()) -> Prompt:
        """Return a request's prompt.

        Args:
            request: The request.
            media: Its media input, in order.

        Raises:
            RequestError: invalid_request, unsupported.
        """
        vocab_size = self._model.vocab_size
        return build_prompt(request, self._encoder, vocab_size, self._syntax, self._media, media, self._infill)

    def prepare(self, request: Generate | Chat, media: abc.Sequence[Any] = ()) -> PreparedRequest:
        """Do all work on a request that can take long.

        Args:
            request: The request. Its prompt is rendered, tokenized and truncated, and its grammar is compiled.
            media: Its media input, in order.

        Raises:
            RequestError: invalid_request, unsupported, context_overflow, out_of_memory.
        """
        return self._prepare(request, None, None, media)

    def _prepare(
        self,
        request: Generate | Chat,
        share: Callable[[PreparedPrompt], None] | None,
        shared: PreparedPrompt | None,
        media: abc.Sequence[Any] = (),
    ) -> PreparedRequest:
        """See `prepare` and `RankRunner.prepare`."""
        if shared:
            return self._complete(request, shared, None)
        check_logit_bias(request, self._model.vocab_size)
        prompt = self.read_prompt(request, media)
        tokens, context_len = prompt.tokens, self._model.context_len
        if len(tokens) + (1 if request.max_tokens is None else request.max_tokens) > context_len:
            tokens = truncate_prompt(request, tokens, context_len, self.tokenizer.bos_token_id)
        if prompt.media_layout and tokens != prompt.tokens:
            problem = f"truncate: the prompt has {len(prompt.tokens)} tokens, and one with images cannot be cut"
            raise RequestError("unsupported", f"{problem}; leave out messages", field="truncate")
        _check_prompt_logprobs(request, len(tokens))
        ready = PreparedPrompt(array("i", tokens).tobytes(), prompt.opening, prompt.effort_budget)
        prepared = self._complete(request, ready, prompt.media_layout)
        if share:
            share(ready)
        return prepared

    def _complete(self, request: Generate | Chat, prompt: PreparedPrompt, media: MediaLayout | None) -> PreparedRequest:
        """Compile the grammar of a request whose prompt is ready."""
        tokens = array("i", prompt.tokens)
        is_reasoning = self._initial_state(request, prompt.opening) == REASONING
        constraint = self._constraint(request, prompt, is_reasoning, self._model.context_len - len(tokens))
        return PreparedRequest(tokens, prompt.opening, media, constraint)

    def _constraint(
        self, request: Generate | Chat, prompt: PreparedPrompt, is_reasoning: bool, room: int
    ) -> Constraint | None:
        """Return the constraint on a request's answers; None for free text."""
        own_budget = request.reasoning_budget if isinstance(request, Chat) else None
        if own_budget is None and prompt.effort_budget is None and not _is_constrained(request):
            return None
        return self._grammars.make_constraint(
            request,
            self._syntax,
            is_reasoning,
            effort_budget=prompt.effort_budget,
            opening=prompt.opening,
            room=room,
        )

    @cached_property
    def _grammars(self) -> "ConstraintFactory":
        from .structured_output.constraint_factory import ConstraintFactory  # free text needs no grammars

        return ConstraintFactory(self.tokenizer, self._model.vocab_size, self.eos_token_ids)

    def build_sequences(
        self, key: int, request: Generate | Chat, seed: int, prepared: PreparedRequest, *, plain_text: bool
    ) -> list[Sequence]:
        """Return a sequence for each choice of a request; see `ModelRunner.add`.

        Args:
            key: The scheduler's name for the request.
            request: The request.
            seed: The seed of the first choice. Each further choice has the next number.
            prepared: The result of `prepare`.
            plain_text: Whether all text is content.
        """
        tokens = prepared.prompt.tolist()
        state = None if plain_text else self._initial_state(request, prepared.opening)
        stops = StringAutomaton(request.stop) if request.stop else None
        return [
            Sequence(
                key,
                request,
                (seed + choice) % (limits.MAX_INT + 1),
                tokens,
                self._output(key, choice, request, tokens, self._answer(request, state, prepared), stops),
                prepared.constraint,
                prepared.media,
                self._repetitions(request),
                self._bans(request),
            )
            for choice in range(request.n)
        ]

    def _repetitions(self, request: Generate | Chat) -> "Repetitions | None":
        """Return what DRY penalizes in an answer; None without DRY."""
        if not request.dry_multiplier:
            return None
        from .sampling.dry import Repetitions  # needs numpy, and few requests ask

        return Repetitions(request, self._token_bytes)

    def _bans(self, request: Generate | Chat) -> BannedStrings | None:
        if not request.banned_strings:
            return None
        return BannedStrings(request.banned_strings, self._token_bytes, self._ends(request))

    def _ends(self, request: Generate | Chat) -> set[int]:
        """Return the tokens that end an answer."""
        return self.end_token_ids if _fills_gap(request) else self.eos_token_ids

    def _output(
        self,
        key: int,
        choice: int,
        request: Generate | Chat,
        prompt: list[int],
        answer: OutputParser | None,
        stops: StringAutomaton | None,
    ) -> OutputProcessor:
        max_tokens = self._model.context_len - len(prompt)
        return OutputProcessor(
            key,
            choice,
            request,
            max_tokens=max_tokens if request.max_tokens is None else min(request.max_tokens, max_tokens),
            eos_token_ids=self._ends(request),
            detokenizer=self._new_detokenizer(prompt if _continues_text(request) else None),
            answer=answer,
            stops=stops,
            format_logprob=self.format_logprob,
        )

    def _initial_state(self, request: Generate | Chat, opening: str) -> str | None:
        """Return the parser state at the start of the answer; None if all text is content."""
        return None if isinstance(request, Generate) else start_state(self._syntax, opening)

    def _answer(self, request: Generate | Chat, state: str | None, prepared: PreparedRequest) -> OutputParser | None:
        """Return the parser of an answer; None if all text is content."""
        if state is None:
            return None
        assert isinstance(request, Chat), "a text that is continued has no channels"
        drops_space = prepared.constraint is not None and prepared.constraint.drops_space
        return OutputParser(self._syntax, state, request.tools, bool(request.callable_tools), drops_space=drops_space)


def check_logit_bias(request: Generation, vocab_size: int) -> None:
    """Check that each biased token exists.

    Args:
        request: The request.
        vocab_size: Number of tokens of the model.

    Raises:
        RequestError: invalid_request.
    """
    for token in request.logit_bias:
        if token >= vocab_size:
            field = f"logit_bias.{token}"
            problem = f"{field}: {token} is not a token of this model, whose vocabulary has {vocab_size}"
            raise RequestError("invalid_request", problem, field=field)


def _check_prompt_logprobs(request: Generate | Chat, prompt_tokens: int) -> None:
    if isinstance(request, Generate) and request.prompt_logprobs and prompt_tokens > limits.PROMPT_LOGPROBS:
        problem = f"the prompt has {prompt_tokens} tokens, and at most {limits.PROMPT_LOGPROBS:,} get log-probabilities"
        raise RequestError("invalid_request", f"prompt_logprobs: {problem}; shorten it", field="prompt_logprobs")


def _fills_gap(request: Generate | Chat) -> bool:
    return isinstance(request, Generate) and request.suffix is not None


def _continues_text(request: Generate | Chat) -> bool:
    """Return whether the answer continues a text of the prompt, and so may begin with a space."""
    return isinstance(request, Generate) or bool(request.prefix) or not request.add_generation_prompt


def _is_constrained(request: Generate | Chat | Tokenize) -> bool:
    """Return whether a grammar constrains a request's answers."""
    if isinstance(request, Tokenize):
        return False
    calls = request.callable_tools if isinstance(request, Chat) else ()
    return request.is_forced or any(tool.function.strict for tool in calls)


def _kind(request: Generate | Chat | Tokenize, size: int) -> WorkKind:
    """Return the kind of work that a request is, so that slow requests do not delay quick ones."""
    if size > LARGE_BYTES and size - sum(len(item.media.data or "") for item in find_media_refs(request)) > LARGE_BYTES:
        return "large"
    has_template = not isinstance(request, Generate) and request.chat_template is not None
    return "hard" if has_template or _is_constrained(request) else "plain"
