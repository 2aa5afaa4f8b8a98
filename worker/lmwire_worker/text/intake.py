"""From a request to the streams that answer it, on one model's tokenizer."""

import contextlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

from mlx_lm.tokenizer_utils import TokenizerWrapper

from lmwire_protocol import Chat, Generate, RequestError, Tokenize, limits

from ..lane import Model
from .answers import REASONING, Answer, Syntax
from .constraints import Grammars
from .detokenizer import make_detokenizers, token_bytes
from .logprobs import Describe
from .penalties import check_logit_bias
from .prompts import Prompt, read_prompt
from .scanner import Strings
from .stream import Stream
from .tools import find_format
from .truncation import fit

if TYPE_CHECKING:
    from ..vision.pictures import Picture
    from ..vision.sight import Sight


class Intake:
    """Reads requests.

    Args:
        tokenizer: The model's own.
        model: What is reported of it.
        sight: Of a model that sees.
    """

    def __init__(self, tokenizer: TokenizerWrapper, model: Model, sight: "Sight | None" = None) -> None:
        self.ends = {token for token in tokenizer.eos_token_ids if token < model.vocab_size}
        """The model's end-of-turn tokens."""
        self.structural = self.ends.union(tokenizer.encode("\n", add_special_tokens=False))
        """What XTC leaves alone: an answer would never end, and never begin a line, as soon as it is sure to."""
        self._model = model
        self._sight = sight
        self._tokenizer = tokenizer
        self._detokenizer = make_detokenizers(tokenizer)
        self._describe = Describe(token_bytes(tokenizer))
        self._syntax = Syntax.of(tokenizer, model.model_type, find_format(tokenizer, model.model_type))
        self._grammars = Grammars(tokenizer, model.vocab_size, self.ends)

    def prepare(self) -> None:
        """Does now what the first structured answer would hold all others up for: about a second with 150k tokens."""
        with contextlib.suppress(RequestError):  # the requests that need it are told
            self._grammars.prepare()

    def read(self, request: Generate | Chat | Tokenize, pictures: "Sequence[Picture]" = ()) -> Prompt:
        """A request's prompt, with its images' pictures in their order.

        Raises:
            RequestError: invalid_request, unsupported.
        """
        return read_prompt(request, self._tokenizer, self._model.vocab_size, self._syntax, self._sight, pictures)

    def streams(
        self, key: int, request: Generate | Chat, seed: int, *, raw: bool, pictures: "Sequence[Picture]" = ()
    ) -> list[Stream]:
        """A stream for each choice; see `Lane.add`.

        Raises:
            RequestError: invalid_request, unsupported, context_overflow.
        """
        prompt = self.read(request, pictures)
        check_logit_bias(request, self._model.vocab_size)
        tokens = fit(request, prompt.tokens, self._model.context_len, self._tokenizer.bos_token_id)
        if prompt.images and tokens != prompt.tokens:
            problem = f"truncate: the prompt has {len(prompt.tokens)} tokens, and one with images cannot be cut"
            raise RequestError("unsupported", f"{problem}; leave out messages", field="truncate")
        room = self._model.context_len - len(tokens)
        state = None if raw or isinstance(request, Generate) else self._syntax.start_state(prompt.opening)
        constraint = self._grammars.constraint(request, self._syntax, state == REASONING)
        stops = Strings(request.stop) if request.stop else None
        return [
            Stream(
                key,
                choice,
                request,
                (seed + choice) % (limits.MAX_INT + 1),
                prompt=tokens,
                images=prompt.images,
                max_tokens=room if request.max_tokens is None else min(request.max_tokens, room),
                ends=self.ends,
                detokenizer=self._detokenizer(tokens if _continues(request) else None),
                answer=None if state is None else self._answer(request, state),
                stops=stops,
                constraint=constraint,
                describe=self._describe,
            )
            for choice in range(request.n)
        ]

    def _answer(self, request: Generate | Chat, state: str) -> Answer:
        assert isinstance(request, Chat), "a text that is continued has no channels"
        reads_calls = bool(request.tools) and request.tool_choice != "none"
        return Answer(self._syntax, state, request.tools, reads_calls)


def _continues(request: Generate | Chat) -> bool:
    """Whether the answer goes on with a text of the prompt, and so may begin with a space."""
    return isinstance(request, Generate) or bool(request.prefix) or not request.add_generation_prompt
