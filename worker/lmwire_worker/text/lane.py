"""The text lane: requests on a language model that mlx-lm loaded, answered together."""

import gc
import time
from typing import Final

import mlx.core as mx
from mlx import nn
from mlx_lm.tokenizer_utils import TokenizerWrapper

from lmwire_protocol import Chat, Generate, RequestError

from ..lane import Failed, Memory, Model, Outcome, Piece, Prefilled
from .batching import Generator, batches, takes_padding
from .detokenizer import make_detokenizers
from .pace import Pace
from .prompts import prompt_tokens
from .stops import StopScanner, StopStrings
from .stream import Stream

ROWS: Final = 32
PROMPTS_TOGETHER: Final = 8


class TextLane:
    """See `lmwire_worker.lane.Lane`.

    Args:
        network: The model with its weights in memory.
        tokenizer: The model's own.
        model: What is reported of it.
    """

    def __init__(self, network: nn.Module, tokenizer: TokenizerWrapper, model: Model) -> None:
        self.model = model
        self.rows = ROWS if batches(network) else 1
        self._prompts_together = 1
        self._network: nn.Module | None = network
        self._tokenizer: TokenizerWrapper | None = tokenizer
        self._detokenizer = make_detokenizers(tokenizer)
        self._ends = set(tokenizer.eos_token_ids)
        self._pace = Pace()
        self._streams: dict[int, Stream] = {}
        self._by_uid: dict[int, Stream] = {}
        self._generator: Generator | None = None

    def add(self, key: int, request: Generate | Chat, seed: int) -> int:
        assert self._network is not None and self._tokenizer is not None
        tokens = prompt_tokens(request, self._tokenizer, self.model.vocab_size)
        room = self.model.context_len - len(tokens)
        if room < 0:
            problem = f"the prompt has {len(tokens)} tokens, and this model's context holds {self.model.context_len}"
            raise RequestError("context_overflow", problem)
        stream = Stream(
            key,
            request,
            seed,
            max_tokens=room if request.max_tokens is None else min(request.max_tokens, room),
            ends=self._ends,
            detokenizer=self._detokenizer(None if isinstance(request, Chat) else tokens),
            stops=StopScanner(StopStrings(request.stop)) if request.stop else None,
        )
        if self._generator is None:
            self._generator = Generator(self._network, self.rows, self._prompts_together)
        stream.uid = self._generator.add(stream, tokens)
        self._streams[key] = self._by_uid[stream.uid] = stream
        return len(tokens)

    def step(self) -> list[Outcome]:
        generator = self._generator
        assert generator is not None
        prompts = generator.prompts_in_work
        running = generator.running
        generator.prefill_step_size = self._pace.slice(running, prompts)
        started = time.perf_counter()
        try:
            progress, rows = generator.advance()
        except Exception as error:
            return self._fail(error)
        seconds = time.perf_counter() - started
        outcomes: list[Outcome] = [row.outcome for row in rows]
        for row in rows:
            if row.ended:
                self._forget(row)
        longest = 0
        for response in progress:
            stream = self._by_uid[response.uid]
            done, total = response.progress
            longest = max(longest, done - stream.prefilled)
            stream.prefilled = done
            outcomes.append(Prefilled(stream.key, done, total))
            if response.end_of_prompt and stream.only_prefills:
                generator.drop(stream.uid)
                self._forget(stream)
                outcomes.append(Piece(stream.key, finish_reason="length"))
        self._pace.learn(seconds, running, longest * len(progress))
        return outcomes

    def remove(self, key: int) -> Piece:
        assert self._generator is not None
        stream = self._streams[key]
        self._generator.drop(stream.uid)
        self._forget(stream)
        return stream.end(None)

    def memory(self) -> Memory:
        return Memory(mx.get_active_memory(), mx.get_cache_memory(), mx.get_peak_memory())

    def close(self) -> int:
        before = mx.get_active_memory() + mx.get_cache_memory()
        self._reset()
        self._network = self._tokenizer = None
        gc.collect()  # modules refer to one another in circles
        mx.clear_cache()
        return max(before - mx.get_active_memory() - mx.get_cache_memory(), 0)

    def try_padding(self) -> None:
        """Lets prompts of different lengths be processed together, if the model gets that right. No request is held."""
        assert self._network is not None
        self._prompts_together = PROMPTS_TOGETHER if takes_padding(self._network) else 1
        self._reset()

    def _reset(self) -> None:
        """Drops the batch, with whatever is in it; the next request starts a new one."""
        self._streams.clear()
        self._by_uid.clear()
        if self._generator is not None:
            self._generator.close()
            self._generator = None

    def _fail(self, error: Exception) -> list[Outcome]:
        """After an exception in the middle of a step no row's cache can be trusted."""
        problem = f"the model failed: {type(error).__name__}: {error}"
        outcomes: list[Outcome] = [Failed(key, RequestError("engine_error", problem)) for key in self._streams]
        self._reset()
        return outcomes

    def _forget(self, stream: Stream) -> None:
        del self._streams[stream.key]
        del self._by_uid[stream.uid]
