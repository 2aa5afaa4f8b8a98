"""From a request to the streams that answer it, on one model's tokenizer."""

import contextlib
from array import array
from collections import abc
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mlx_lm.tokenizer_utils import TokenizerWrapper

from lmwire_protocol import Chat, Generate, RequestError, Tokenize, limits

from ..engine.interface import ModelInfo
from ..prompts.builder import Prompt, read_prompt
from ..prompts.chat_template import find_template
from ..prompts.template_probe import find_traits
from ..prompts.tokenization import Encoder
from ..prompts.truncation import fit
from .output_parsing import REASONING, Answer, Syntax
from .output_parsing.detokenizer import make_detokenizers, token_bytes
from .sampling.logprobs import LogprobFormatter
from .sampling.penalties import check_logit_bias
from .sequence import Sequence
from .string_matcher import Strings
from .structured_output import Constraint, Grammars
from .tool_parsers import find_format

if TYPE_CHECKING:
    from ..multimodal.media_input import Picture
    from ..multimodal.placeholders import ImageLayout
    from ..multimodal.processor import Sight


@dataclass(frozen=True, slots=True)
class PreparedRequest:
    """A request that is prepared."""

    prompt: "array[int]"
    """Its tokens, as many as fit."""
    opening: str
    """See `Prompt.opening`."""
    media: "ImageLayout | None"
    constraint: Constraint | None


class RequestPreparer:
    """Reads requests. `prepare` and `read` may be called from any thread.

    Args:
        tokenizer: The model's own.
        model: What is reported of it.
        budget: Bytes that the model and its requests may take together.
        sight: Of a model that sees.
    """

    def __init__(
        self, tokenizer: TokenizerWrapper, model: ModelInfo, budget: int, sight: "Sight | None" = None
    ) -> None:
        self.eos_token_ids = {token for token in tokenizer.eos_token_ids if token < model.vocab_size}
        """The model's end-of-turn tokens."""
        self.xtc_special_tokens = self.eos_token_ids.union(tokenizer.encode("\n", add_special_tokens=False))
        """What XTC leaves alone: an answer would never end, and never begin a line, as soon as it is sure to."""
        self._model = model
        self._sight = sight
        self._tokenizer = tokenizer
        self._encoder = Encoder(tokenizer, model.context_len, budget)
        self._detokenizer = make_detokenizers(tokenizer)
        self._describe = LogprobFormatter(token_bytes(tokenizer))
        self._syntax = Syntax.of(tokenizer, model.model_type, find_format(tokenizer, model.model_type))
        self._grammars = Grammars(tokenizer, model.vocab_size, self.eos_token_ids)

    def warm_up(self) -> None:
        """Do now what the first structured answer would hold all others up for: about a second with 150k tokens."""
        with contextlib.suppress(RequestError):  # the requests that need it are told
            self._grammars.prepare()

    def probe_template(self) -> None:
        """Try the model's chat template out now, so that the first chat need not wait for it."""
        with contextlib.suppress(RequestError):
            find_traits(find_template(self._tokenizer, None, tools=False))

    def read_prompt(self, request: Generate | Chat | Tokenize, pictures: "abc.Sequence[Picture]" = ()) -> Prompt:
        """A request's prompt, with its images' pictures in their order.

        Raises:
            RequestError: invalid_request, unsupported.
        """
        return read_prompt(request, self._encoder, self._model.vocab_size, self._syntax, self._sight, pictures)

    def prepare(self, request: Generate | Chat, pictures: "abc.Sequence[Picture]" = ()) -> PreparedRequest:
        """Do what can take long about a request.

        Args:
            request: Its prompt is written, tokenized and cut, and its grammar is compiled.
            pictures: Of its images, in their order.

        Raises:
            RequestError: invalid_request, unsupported, context_overflow, out_of_memory.
        """
        check_logit_bias(request, self._model.vocab_size)
        prompt = self.read_prompt(request, pictures)
        tokens = fit(request, prompt.tokens, self._model.context_len, self._tokenizer.bos_token_id)
        if prompt.images and tokens != prompt.tokens:
            problem = f"truncate: the prompt has {len(prompt.tokens)} tokens, and one with images cannot be cut"
            raise RequestError("unsupported", f"{problem}; leave out messages", field="truncate")
        constraint = self._grammars.constraint(request, self._syntax, self._state(request, prompt) == REASONING)
        return PreparedRequest(array("i", tokens), prompt.opening, prompt.images, constraint)

    def build_sequences(
        self, key: int, request: Generate | Chat, seed: int, ready: PreparedRequest, *, plain_text: bool
    ) -> list[Sequence]:
        """Return a stream for each choice; see `ModelRunner.add`."""
        tokens = ready.prompt.tolist()
        room = self._model.context_len - len(tokens)
        state = None if plain_text else self._state(request, ready)
        stops = Strings(request.stop) if request.stop else None
        return [
            Sequence(
                key,
                choice,
                request,
                (seed + choice) % (limits.MAX_INT + 1),
                prompt=tokens,
                images=ready.media,
                max_tokens=room if request.max_tokens is None else min(request.max_tokens, room),
                ends=self.eos_token_ids,
                detokenizer=self._detokenizer(tokens if _continues(request) else None),
                answer=None if state is None else self._answer(request, state),
                stops=stops,
                constraint=ready.constraint,
                describe=self._describe,
            )
            for choice in range(request.n)
        ]

    def _state(self, request: Generate | Chat, prompt: Prompt | PreparedRequest) -> str | None:
        """Return the state in which the answer begins; None where all text is content."""
        return None if isinstance(request, Generate) else self._syntax.start_state(prompt.opening)

    def _answer(self, request: Generate | Chat, state: str) -> Answer:
        assert isinstance(request, Chat), "a text that is continued has no channels"
        reads_calls = bool(request.tools) and request.tool_choice != "none"
        return Answer(self._syntax, state, request.tools, reads_calls)


def _continues(request: Generate | Chat) -> bool:
    """Whether the answer goes on with a text of the prompt, and so may begin with a space."""
    return isinstance(request, Generate) or bool(request.prefix) or not request.add_generation_prompt
