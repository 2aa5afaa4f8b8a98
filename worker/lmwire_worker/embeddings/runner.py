"""Run an embedding model: the inputs of all requests, a few at a time."""

import contextlib
from array import array
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from lmwire_protocol import Embed, ImagePart, RequestError, TextPart, Tokenize, TokensPart

from ..engine.interface import (
    AdmittedRequest,
    EmbeddingOutput,
    InferenceCommand,
    ModelInfo,
    Preparation,
    RunnerEvent,
)
from ..engine.preparation import PreparationThreads, Prepared
from ..media import Image, MediaReader, find_media_refs
from ..models.device_memory import format_bytes
from ..models.uncached_runner import UncachedRunner
from ..prompts.tokenization import MEMORY_PER_TEXT_BYTE
from .inputs import InputTokenizer
from .network import EmbeddingInput, EmbeddingNetwork
from .qwen3_vl import VisionInputTokenizer

MAX_STEP_TOKENS: Final = 2048
"""Tokens of a step, with padding. A longer input has a step to itself."""
MAX_STEP_ROWS: Final = 32
MAX_BATCH_SIZE: Final = 64
SMALL_CHARACTERS: Final = 2**13
"""Characters of a small request: a thread takes longer to start than to tokenize them."""
MANY_CHARACTERS: Final = 2**18
"""Characters of a large request. A thread of its own prepares it, so that smaller ones need not wait."""
IMAGE_TOKEN_BYTES: Final = 2**18
"""Rough bytes that an image's token takes during a step: its patches, twice, and one layer of the encoder."""


@dataclass
class _EmbedState:
    """A request, and its inputs that have no vector yet."""

    key: int
    normalize: bool
    dimensions: int
    waiting: deque[tuple[int, EmbeddingInput]]
    """The inputs with their indices, the longest first: rows of one length need no padding."""


@dataclass(frozen=True)
class _Row:
    """One input of a step."""

    state: _EmbedState
    index: int
    input: EmbeddingInput


class EmbeddingRunner(UncachedRunner[_EmbedState]):
    """See `lmwire_worker.engine.interface.ModelRunner`.

    Args:
        network: The model, with its weights in memory.
        inputs: Its tokenizer.
        model: Its description.
        width: Length of a vector.
        budget: Bytes that a step may take.
        reader: Reads images.
    """

    max_batch_size = MAX_BATCH_SIZE

    def __init__(
        self,
        network: EmbeddingNetwork,
        inputs: InputTokenizer,
        model: ModelInfo,
        width: int,
        budget: int,
        reader: MediaReader,
    ) -> None:
        super().__init__()
        self.model = model
        self.network: EmbeddingNetwork | None = network
        self.inputs = inputs
        self._vision_inputs = inputs if isinstance(inputs, VisionInputTokenizer) else None
        self._width = width
        self._budget = budget
        self._reader = reader
        self._preparer = PreparationThreads({"plain": 1, "large": 1})
        self.rows_together = MAX_STEP_ROWS if network.supports_batching else 1

    def prepare(
        self, request: InferenceCommand | Tokenize, ready: Callable[[], None], size: int = 0
    ) -> Preparation | None:
        """Tokenize large texts and read images in threads; see `ModelRunner`."""
        if not isinstance(request, Embed | Tokenize):
            return None
        items = find_media_refs(request) if isinstance(request, Embed) and self._vision_inputs else []
        characters = sum(map(len, _texts(request)))
        if not items and characters < SMALL_CHARACTERS and self.inputs.is_quick:
            return None
        kind = "large" if characters > MANY_CHARACTERS else "plain"
        work = partial(self._inputs_of if isinstance(request, Embed) else self._prompt_of, request)
        return self._preparer.start(kind, work, ready, lambda done: self._reader.read(items, done) if items else None)

    def add(
        self,
        key: int,
        request: InferenceCommand,
        seed: int,
        *,
        plain_text: bool = False,
        prepared: Preparation | None = None,
    ) -> AdmittedRequest:
        """Queue an `embed`; see `ModelRunner`."""
        assert isinstance(request, Embed)
        dimensions = request.dimensions or self._width
        if dimensions > self._width:
            problem = f"dimensions: this model's vectors have {self._width} numbers, not {dimensions}"
            raise RequestError("invalid_request", problem, field="dimensions")
        inputs = prepared.result() if isinstance(prepared, Prepared) else self._inputs_of(request)
        self.requests.append(_EmbedState(key, request.normalize, dimensions, deque(inputs)))
        return AdmittedRequest(prompt_tokens=0)  # each vector brings the count of its input

    def step(self) -> list[RunnerEvent]:
        """Compute the vectors of a batch of inputs; see `ModelRunner`."""
        rows = self._next_rows()
        with contextlib.suppress(BaseException):
            return self._embed(rows)
        keys = dict.fromkeys(row.state.key for row in rows)
        return [event for key in keys for event in self._embed_alone([row for row in rows if row.state.key == key])]

    def tokenize(self, request: Tokenize, prepared: Preparation | None = None) -> tuple[list[int], str]:
        """Return a prompt's tokens and text; see `ModelRunner`."""
        return prepared.result() if isinstance(prepared, Prepared) else self._prompt_of(request)

    def _release(self) -> None:
        self._reader.close()
        self._preparer.close()
        self.network = None

    # Inputs. Any thread may call these methods.

    def _inputs_of(self, request: Embed, media: Sequence[Any] = ()) -> list[tuple[int, EmbeddingInput]]:
        """Return a request's inputs with their indices, the longest first.

        Raises:
            RequestError: invalid_request, unsupported, context_overflow, out_of_memory.
        """
        images = (medium for medium in media if isinstance(medium, Image))
        inputs = [(index, self._read(part, f"input[{index}]", images)) for index, part in enumerate(request.input)]
        inputs.sort(key=lambda item: -len(item[1].tokens))
        return inputs

    def _prompt_of(self, request: Tokenize, media: Sequence[Any] = ()) -> tuple[list[int], str]:
        if request.prompt is None:
            problem = "messages: an embedding model has no chat template; give `prompt`"
            raise RequestError("unsupported", problem, field="messages")
        return self._tokens(request.prompt, "prompt"), self.inputs.render(request.prompt)

    def _read(
        self, part: str | TextPart | ImagePart | TokensPart, field: str, images: Iterator[Image]
    ) -> EmbeddingInput:
        """Return the input of a part. `images` yields its image, if it is one. Raises RequestError."""
        if isinstance(part, ImagePart):
            read = self._image(field, images)
        elif isinstance(part, TokensPart):
            read = EmbeddingInput(self._tokens(part.token_ids, f"{field}.token_ids"))
        else:
            text = part.text if isinstance(part, TextPart) else part
            if len(text) > SMALL_CHARACTERS and (least := self.inputs.min_tokens(text)) > self.model.context_len:
                problem = f"{field}: comes to {least} tokens at least, and the model takes {self.model.context_len}"
                raise RequestError("context_overflow", problem, field=field)
            read = EmbeddingInput(self._tokens(text, field))
        count = len(read.tokens)
        if not count:
            raise RequestError("invalid_request", f"{field}: comes to no tokens", field=field)
        if count > self.model.context_len:
            problem = f"{field}: comes to {count} tokens, and the model takes {self.model.context_len}"
            raise RequestError("context_overflow", problem, field=field)
        need = step_bytes(self.model, count) + IMAGE_TOKEN_BYTES * count * (read.pixels is not None)
        if need > self._budget:
            problem = (
                f"{field}: {count} tokens need {format_bytes(need)}, and the budget is {format_bytes(self._budget)}"
            )
            raise RequestError("out_of_memory", problem, field=field)
        return read

    def _image(self, field: str, images: Iterator[Image]) -> EmbeddingInput:
        if self._vision_inputs is None:
            able = ", ".join(self.model.capabilities)
            problem = f"{field}: {self.model.path} makes vectors of texts alone, and this is an image; it can {able}"
            raise RequestError("unsupported", problem, field=field)
        image = next(images)
        try:
            return EmbeddingInput(self._vision_inputs.image_tokens(image), image.pixels)
        except ValueError as error:
            problem = f"{field}.media: this model's image processor refuses it: {error}"
            raise RequestError("invalid_request", problem, field=f"{field}.media") from None

    def _tokens(self, given: str | list[int], field: str) -> list[int]:
        """Return the tokens of a text, or those that were given. Raises RequestError."""
        if isinstance(given, str) and (need := MEMORY_PER_TEXT_BYTE * len(given.encode())) > self._budget:
            problem = f"{field}: to tokenize it takes {format_bytes(need)}, and there are {format_bytes(self._budget)}"
            raise RequestError("out_of_memory", problem, field=field)
        try:
            if isinstance(given, str):
                return self.inputs.tokens(given, field)
            return self.inputs.check_tokens(given, field)
        except ValueError as error:
            raise RequestError("invalid_request", f"{field}: {error}", field=field) from None

    # Steps.

    def _next_rows(self) -> list[_Row]:
        """Return the next inputs of the request whose turn it is, and in the remaining places those of others."""
        rows: list[_Row] = []
        width = 0
        for held in self.requests:
            while held.waiting and len(rows) < self.rows_together:
                index, read = held.waiting[0]
                wider = max(width, len(read.tokens))
                if rows and wider * (len(rows) + 1) > MAX_STEP_TOKENS:
                    break
                width = wider
                held.waiting.popleft()
                rows.append(_Row(held, index, read))
        self.requests.rotate(-1)
        return rows

    def _embed(self, rows: Sequence[_Row]) -> list[RunnerEvent]:
        assert self.network is not None
        vectors = self.network.embed([row.input for row in rows], normalize=[row.state.normalize for row in rows])
        events: list[RunnerEvent] = []
        for row, whole in zip(rows, vectors, strict=True):
            vector = _truncate(whole, row.state.dimensions, normalize=row.state.normalize)
            events.append(EmbeddingOutput(row.state.key, row.index, vector, len(row.input.tokens)))
        done = {row.state.key for row in rows if not row.state.waiting}
        self.requests = deque(held for held in self.requests if held.key not in done)
        return events

    def _embed_alone(self, rows: Sequence[_Row]) -> list[RunnerEvent]:
        """Repeat one request's part of a step that failed, so that the error ends the request at fault alone."""
        try:
            return self._embed(rows)
        except BaseException as error:
            return self._fail(rows[0].state.key, error)


def _texts(request: Embed | Tokenize) -> list[str]:
    if isinstance(request, Tokenize):
        return [request.prompt or ""]
    texts = [part.text if isinstance(part, TextPart) else part for part in request.input]
    return [text for text in texts if isinstance(text, str)]


def step_bytes(model: ModelInfo, tokens: int) -> int:
    """Return the rough bytes that an input takes during a step: two masks of all pairs of tokens, and one layer.

    Args:
        model: The model.
        tokens: Number of tokens of the input.
    """
    return 8 * tokens * tokens + 64 * tokens * max(model.hidden_size, 1)


def _truncate(vector: "array[float]", dimensions: int, *, normalize: bool) -> "array[float]":
    if dimensions == len(vector):
        return vector
    vector = vector[:dimensions]
    length = sum(value * value for value in vector) ** 0.5
    return array("f", [value / length for value in vector]) if normalize and length else vector
