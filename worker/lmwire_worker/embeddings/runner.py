"""The embedding lane: the inputs of all requests, a few at a time."""

import contextlib
from array import array
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from lmwire_protocol import Embed, ImagePart, RequestError, TextPart, Tokenize
from lmwire_protocol.events import CacheStats

from ..engine.interface import (
    AdmittedRequest,
    EmbeddingOutput,
    Failed,
    InferenceCommand,
    MemoryUsage,
    ModelInfo,
    Preparation,
    RunnerEvent,
)
from ..engine.preparation import Prepared, Preparer
from ..media import Image, Reader, items_of
from ..models.memory_budget import format_bytes, is_out_of_memory, measure_freed, memory_usage
from ..prompts.tokenization import MEMORY_PER_TEXT_BYTE
from .inputs import TextInputs
from .network import EmbeddingNetwork, Input
from .qwen3_vl import SeenInputs

STEP_TOKENS: Final = 2048
"""Of a step, padding included; a longer input has a step to itself."""
STEP_ROWS: Final = 32
ROWS: Final = 64
SMALL_CHARACTERS: Final = 2**13
"""Characters that are tokenized in less time than a thread takes to start with them."""
LARGE_CHARACTERS: Final = 2**18
"""Characters of texts that have a thread of their own: smaller ones do not wait for them."""
IMAGE_TOKEN_BYTES: Final = 2**18
"""What a token of an image takes for a moment, roughly: its patches, twice, and the encoder's layer at work."""


@dataclass
class _Held:
    """A request, and which of its inputs have no vector yet."""

    key: int
    normalize: bool
    dimensions: int
    waiting: deque[tuple[int, Input]]
    """With their indices, the longest first: rows of one length need no padding."""


@dataclass(frozen=True)
class _Row:
    held: _Held
    index: int
    input: Input


class EmbeddingRunner:
    """See `lmwire_worker.engine.interface.ModelRunner`.

    Args:
        network: The model with its weights in memory.
        inputs: What it takes for what requests give.
        model: What is reported of it.
        width: The numbers of a vector.
        budget: Bytes that a step may take.
        reader: Reads images.
    """

    max_batch_size = ROWS
    batch_wait_s = 0.0

    def __init__(
        self, network: EmbeddingNetwork, inputs: TextInputs, model: ModelInfo, width: int, budget: int, reader: Reader
    ) -> None:
        self.model = model
        self._network: EmbeddingNetwork | None = network
        self._inputs = inputs
        self._seen = inputs if isinstance(inputs, SeenInputs) else None
        self._width = width
        self._budget = budget
        self._reader = reader
        self._preparer = Preparer({"plain": 1, "large": 1})
        self._rows_together = STEP_ROWS if network.batches else 1
        self._requests: deque[_Held] = deque()
        """In the order in which their turns come."""

    def prepare(
        self, request: InferenceCommand | Tokenize, ready: Callable[[], None], size: int = 0
    ) -> Preparation | None:
        if not isinstance(request, Embed | Tokenize):
            return None
        items = items_of(request) if isinstance(request, Embed) and self._seen else []
        characters = sum(map(len, _texts(request)))
        if not items and characters < SMALL_CHARACTERS:
            return None
        kind = "large" if characters > LARGE_CHARACTERS else "plain"
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
        assert isinstance(request, Embed)
        dimensions = request.dimensions or self._width
        if dimensions > self._width:
            problem = f"dimensions: this model's vectors have {self._width} numbers, not {dimensions}"
            raise RequestError("invalid_request", problem, field="dimensions")
        inputs = prepared.result() if isinstance(prepared, Prepared) else self._inputs_of(request)
        self._requests.append(_Held(key, request.normalize, dimensions, deque(inputs)))
        return AdmittedRequest(prompt_tokens=0)  # counted as their vectors come

    def step(self) -> list[RunnerEvent]:
        rows = self._next()
        with contextlib.suppress(Exception):
            return self._embed(rows)
        keys = dict.fromkeys(row.held.key for row in rows)
        return [outcome for key in keys for outcome in self._alone([row for row in rows if row.held.key == key])]

    def remove(self, key: int) -> Sequence[RunnerEvent]:
        self._requests = deque(held for held in self._requests if held.key != key)
        return []

    def tokenize(self, request: Tokenize, prepared: Preparation | None = None) -> tuple[list[int], str]:
        return prepared.result() if isinstance(prepared, Prepared) else self._prompt_of(request)

    def memory(self) -> MemoryUsage:
        return memory_usage()

    def cache_stats(self) -> CacheStats | None:
        return None

    def clear_cache(self) -> int:
        return 0

    def close(self) -> int:
        return measure_freed(self._let_go)

    def _let_go(self) -> None:
        self._reader.close()
        self._preparer.close()
        self._network = None

    # Inputs. These methods may be called from any thread.

    def _inputs_of(self, request: Embed, media: Sequence[Any] = ()) -> list[tuple[int, Input]]:
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
            problem = "messages: a model that makes vectors has no chat template; give `prompt`"
            raise RequestError("unsupported", problem, field="messages")
        return self._text_tokens(request.prompt, "prompt"), self._inputs.render(request.prompt)

    def _read(self, part: str | TextPart | ImagePart, field: str, images: Iterator[Image]) -> Input:
        """What a part becomes; `images` has its image, if it is one. Raises RequestError."""
        if isinstance(part, ImagePart):
            read = self._image(field, images)
        else:
            text = part.text if isinstance(part, TextPart) else part
            if len(text) > SMALL_CHARACTERS and (least := self._inputs.least(text)) > self.model.context_len:
                problem = f"{field}: comes to {least} tokens at least, and the model takes {self.model.context_len}"
                raise RequestError("context_overflow", problem, field=field)
            read = Input(self._text_tokens(text, field))
        count = len(read.tokens)
        if not count:
            raise RequestError("invalid_request", f"{field}: comes to no tokens", field=field)
        if count > self.model.context_len:
            problem = f"{field}: comes to {count} tokens, and the model takes {self.model.context_len}"
            raise RequestError("context_overflow", problem, field=field)
        need = step_bytes(self.model, count) + IMAGE_TOKEN_BYTES * count * (read.pixels is not None)
        if need > self._budget:
            problem = f"{field}: {count} tokens need {format_bytes(need)}, and there are {format_bytes(self._budget)}"
            raise RequestError("out_of_memory", problem, field=field)
        return read

    def _image(self, field: str, images: Iterator[Image]) -> Input:
        if self._seen is None:
            able = ", ".join(self.model.capabilities)
            problem = f"{field}: {self.model.path} makes vectors of texts alone, and this is an image; it can {able}"
            raise RequestError("unsupported", problem, field=field)
        image = next(images)
        try:
            return Input(self._seen.image_tokens(image), image.pixels)
        except ValueError as error:
            problem = f"{field}.media: this model's image processor refuses it: {error}"
            raise RequestError("invalid_request", problem, field=f"{field}.media") from None

    def _text_tokens(self, text: str, field: str) -> list[int]:
        need = MEMORY_PER_TEXT_BYTE * len(text.encode())
        if need > self._budget:
            problem = f"{field}: to tokenize it takes {format_bytes(need)}, and there are {format_bytes(self._budget)}"
            raise RequestError("out_of_memory", problem, field=field)
        try:
            return self._inputs.tokens(text)
        except ValueError as error:
            raise RequestError("invalid_request", f"{field}: {error}", field=field) from None

    # Steps.

    def _next(self) -> list[_Row]:
        """The next inputs of the request whose turn it is, and with what room is left those of the others."""
        rows: list[_Row] = []
        width = 0
        for held in self._requests:
            while held.waiting and len(rows) < self._rows_together:
                index, read = held.waiting[0]
                wider = max(width, len(read.tokens))
                if rows and wider * (len(rows) + 1) > STEP_TOKENS:
                    break
                width = wider
                held.waiting.popleft()
                rows.append(_Row(held, index, read))
        self._requests.rotate(-1)
        return rows

    def _embed(self, rows: Sequence[_Row]) -> list[RunnerEvent]:
        assert self._network is not None
        vectors = self._network.embed([row.input for row in rows], normalize=[row.held.normalize for row in rows])
        outcomes: list[RunnerEvent] = []
        for row, whole in zip(rows, vectors, strict=True):
            vector = _cut(whole, row.held.dimensions, normalize=row.held.normalize)
            outcomes.append(EmbeddingOutput(row.held.key, row.index, vector, len(row.input.tokens)))
        done = {row.held.key for row in rows if not row.held.waiting}
        self._requests = deque(held for held in self._requests if held.key not in done)
        return outcomes

    def _alone(self, rows: Sequence[_Row]) -> list[RunnerEvent]:
        """One request's part of a step that failed: those that are not at fault do not notice."""
        try:
            return self._embed(rows)
        except Exception as error:
            code = "out_of_memory" if is_out_of_memory(error) else "engine_error"
            failure = RequestError(code, f"the model library failed: {type(error).__name__}: {error}")
        self.remove(rows[0].held.key)
        return [Failed(rows[0].held.key, failure)]


def _texts(request: Embed | Tokenize) -> list[str]:
    if isinstance(request, Tokenize):
        return [request.prompt or ""]
    return [
        part.text if isinstance(part, TextPart) else part for part in request.input if not isinstance(part, ImagePart)
    ]


def step_bytes(model: ModelInfo, tokens: int) -> int:
    """What an input of so many tokens takes for a moment, roughly: two masks of all pairs, and the layer at work."""
    return 8 * tokens * tokens + 64 * tokens * max(model.hidden_size, 1)


def _cut(vector: "array[float]", dimensions: int, *, normalize: bool) -> "array[float]":
    if dimensions == len(vector):
        return vector
    vector = vector[:dimensions]
    length = sum(value * value for value in vector) ** 0.5
    return array("f", [value / length for value in vector]) if normalize and length else vector
