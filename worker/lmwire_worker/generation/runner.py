"""Run requests on a language model, all together in one batch.

A request passes six stages: prepare (in threads), admit, prefill, decode, parse (`Sequence.append_token`), deliver.
"""

import time
from collections.abc import Callable
from typing import Final

import mlx.core as mx
from mlx import nn

from lmwire_protocol import Chat, Generate, Tokenize
from lmwire_protocol.events import CacheStats

from ..engine.interface import (
    AdmittedRequest,
    Failed,
    InferenceCommand,
    MemoryUsage,
    ModelInfo,
    Preparation,
    RunnerEvent,
)
from ..engine.preparation import Prepared
from ..models.memory_budget import measure_freed, memory_usage, release_unused_memory
from ..models.tokenizer import Tokenizer
from ..output_parsing import Syntax
from .active_requests import ActiveRequests
from .admission import Admission, MemoryBudget
from .batching import Batch, SpeculativeBatch, TargetDraftPair, supports_batching, supports_padding
from .cache_manager import CacheManager
from .media_backend import MediaBackend
from .media_queue import MediaQueue
from .pending import PendingRequest, PendingRequests
from .prefill.policy import PrefillPolicy
from .prefill.prefiller import Prefiller
from .prefill.prompt_scoring import PromptScoring
from .prefix_cache import DiskTier
from .preparation_threads import PreparationThreads
from .recovery import Recovery, failure
from .request_preparation import RequestPreparer
from .sequence import Sequence

MAX_BATCH_SIZE: Final = 32
"""Maximum number of choices decoded together."""
MAX_PREFILL_BATCH: Final = 16
"""Maximum number of prompts prefilled together."""


class GenerationRunner:
    """See `lmwire_worker.engine.interface.ModelRunner`.

    Args:
        network: The model, with its weights in memory; a `TargetDraftPair` with a draft model.
        tokenizer: The model's tokenizer.
        model: The model's description.
        budget: The memory of the model and its requests.
        disk: The prefix cache on disk; None if nothing is written to disk.
        media: Reads and computes media; None for a model without.
        batches: Whether rows may be computed together.
        weights: Kept in memory as long as the runner, so that the next load may share it.
        syntax: The model's output syntax; None to find it.
    """

    def __init__(
        self,
        network: nn.Module,
        tokenizer: Tokenizer,
        model: ModelInfo,
        budget: MemoryBudget,
        disk: DiskTier | None = None,
        media: MediaBackend | None = None,
        *,
        batches: bool = True,
        weights: object = None,
        syntax: Syntax | None = None,
    ) -> None:
        self.model = model
        can_batch = batches and supports_batching(network) and not isinstance(network, TargetDraftPair)
        self.max_batch_size = MAX_BATCH_SIZE if can_batch else 1
        self._max_prefill_batch = 1
        self._network = network
        self._weights = weights
        self._media = media
        self._preparer = RequestPreparer(tokenizer, model, budget.total_bytes, media, syntax)
        self._threads = PreparationThreads(self._preparer, media)
        self._active = ActiveRequests(self._new_batch)
        self._cache_manager = CacheManager(
            network,
            budget,
            self._preparer.eos_token_ids,
            disk,
            media.feature_cache if media else None,
            lambda: self._active.media_inputs,
        )
        self._admission = Admission(budget, self._cache_manager, lambda: self._active.lengths)
        self._max_padding_tokens = budget.max_padding_tokens
        self._policy = PrefillPolicy()
        self._pending = PendingRequests(self._cache_manager, self._active.in_batch)
        self._media_queue = MediaQueue()
        self._recovery = Recovery(network, self._active, self._cache_manager, media)
        self._prefiller = Prefiller(self._active, self._cache_manager, self._policy, self._media_queue, self._recover)
        self._prefills_next = True
        """True if the next step computes prompts, if there are any. Prompts and answers take turns."""

    # Prepare.

    @property
    def batch_wait_s(self) -> float:
        """See `ModelRunner.batch_wait_s`."""
        return self._policy.batch_wait_s if len(self._active.by_key) < self._max_prefill_batch else 0.0

    def prepare(
        self, request: InferenceCommand | Tokenize, ready: Callable[[], None], size: int = 0
    ) -> Preparation | None:
        """See `ModelRunner.prepare`."""
        is_served = isinstance(request, Generate | Chat | Tokenize)
        return self._threads.start(request, ready, size) if is_served else None

    def tokenize(self, request: Tokenize, prepared: Preparation | None = None) -> tuple[list[int], str]:
        """See `ModelRunner.tokenize`."""
        prompt = prepared.result() if isinstance(prepared, Prepared) else self._preparer.read_prompt(request)
        return prompt.tokens, prompt.text

    def enable_padding(self) -> None:
        """Prefill prompts of different lengths together, if the model computes them correctly. No request is active."""
        self._max_prefill_batch = MAX_PREFILL_BATCH if supports_padding(self._network) else 1
        self._active.reset()

    # Admit.

    def add(
        self,
        key: int,
        request: InferenceCommand,
        seed: int,
        *,
        plain_text: bool = False,
        prepared: Preparation | None = None,
    ) -> AdmittedRequest:
        """See `ModelRunner.add`."""
        assert isinstance(request, Generate | Chat)
        ready = prepared.result() if isinstance(prepared, Prepared) else self._preparer.prepare(request)
        sequences = self._preparer.build_sequences(key, request, seed, ready, plain_text=plain_text)
        first = sequences[0]
        self._cache_manager.check_pin(first)
        media_bytes = sum(media.nbytes for media in first.media_inputs)
        self._admission.check(len(first.prompt), request.max_tokens, request.n, media_bytes)
        admitted = AdmittedRequest(len(first.prompt))
        pending = PendingRequest(admitted, sequences, self._cache_manager.start_reading(first))
        if not self._pending.hold(key, pending):
            self._start(pending)
        self._active.by_key[key] = sequences
        return admitted

    def _start_pending(self) -> list[RunnerEvent]:
        events: list[RunnerEvent] = []
        for key, pending in self._pending.take_ready():
            try:
                self._start(pending)
            except BaseException as error:
                self._drop(key)
                events.append(failure(key, error))
        return events

    def _start(self, pending: PendingRequest) -> None:
        """Start after the cached tokens: with the media of the prompt, if those are not computed, or in the batch."""
        sequences, first = pending.sequences, pending.sequences[0]
        if isinstance(first.request, Generate) and first.request.prompt_logprobs:
            vocab_size, count = self.model.vocab_size, first.request.top_logprobs
            scoring = PromptScoring(self._network, first.prompt, vocab_size, count, self._preparer.format_logprob)
            self._media_queue.add(first, scoring)
            return
        hit = self._cache_manager.find(first, pending.read.result() if pending.read else None)
        first.start_from(hit)
        cache = hit.cache if hit and not hit.needs_verification else None
        pending.admitted.cached_tokens = first.prefix_tokens
        if self._media and first.media and first.prefix_tokens < first.media.end:
            tokens = first.prompt[: first.media.end if self._cache_manager.needs_snapshots else -1]
            prefill = self._media.prefill(first.media, tokens, cache, first.prefix_tokens)
            self._media_queue.add(first, prefill)
            return
        if self._media and first.media and cache:
            self._media.set_rope_delta(first.media, first.prompt, cache)
        self._active.start(self._cache_manager, sequences, cache)

    # A step: a chunk of the prompts in work, or a token for each running answer, in turns.

    def step(self) -> list[RunnerEvent]:
        """See `ModelRunner.step`."""
        if self._recovery.is_pending:
            return self._recovery.restart_next()
        events = self._start_pending()
        if not self._active.in_batch and not self._media_queue:
            self._pending.wait_for_disk()
        elif self._prefills_next and (self._media_queue or self._active.batch.has_prompts):
            self._prefills_next = False
            events += self._prefiller.step() + self._end_over_budget()
        else:
            events += self._decode()
        return events

    # Decode.

    def _decode(self) -> list[RunnerEvent]:
        batch = self._active.batch
        events: list[RunnerEvent] = []
        started = time.perf_counter()
        try:
            for prompt in batch.start_decoding():
                if sequence := self._active.in_batch.get(prompt.uid):  # None if its request has just ended
                    events += self._prefiller.advance(sequence, prompt)
            if rows := batch.first_tokens():
                events += self._deliver(rows)
                self._prefills_next = not batch.running  # else the next step of these rows comes first
                return events + self._end_over_budget()
            running = batch.running
            rows = batch.decode()
        except BaseException as error:
            return events + self._recover(error)
        self._recovery.step_succeeded()
        self._prefiller.decode_s = decode_s = time.perf_counter() - started
        if self._prefills_next:  # after a chunk, a step is short: the chunk's duration covers its start
            self._policy.record_step(decode_s, running, 0, 0, 0)
        self._prefills_next = True
        return events + self._deliver(rows) + self._end_over_budget()

    # Deliver.

    def _deliver(self, rows: list[Sequence]) -> list[RunnerEvent]:
        """Return the events of rows, and remove the rows that have ended from the batch."""
        events, ended = self._take_events(rows)
        if ended:
            try:
                self._active.store_checkpoints(ended, self._cache_manager)
                self._active.batch.drop([row.uid for row in ended if row.uid is not None])
            except BaseException as error:
                return events + self._recover(error)
        return events

    def _take_events(self, rows: list[Sequence]) -> tuple[list[RunnerEvent], list[Sequence]]:
        """Return the events of rows, and the rows that have ended."""
        events: list[RunnerEvent] = []
        ended: list[Sequence] = []
        for row in rows:
            if row.key not in self._active.by_key:
                continue  # another choice of the request has just failed
            new = row.take_events()
            events += new
            if row.ended:
                ended.append(row)
                self._active.remove_ended(row)
                if isinstance(new[-1], Failed):
                    self._drop(row.key)
        return events, ended

    def remove(self, key: int) -> list[RunnerEvent]:
        """See `ModelRunner.remove`."""
        sequences = self._active.by_key[key]
        self._drop(key)
        return [event for sequence in sequences for event in sequence.finish(None)]

    def _drop(self, key: int) -> None:
        """Remove a request in whatever stage."""
        self._pending.discard(key)
        self._media_queue.discard(key)
        self._active.drop(key, self._cache_manager)

    def _recover(self, error: BaseException) -> list[RunnerEvent]:
        """Prepare to restart all rows of a failed step; see `recovery`."""
        rows = list(self._active.in_batch.values())
        for row in rows:
            row.distrust()
        events, _ = self._take_events(rows)  # of rows whose tokens came before the failure
        return events + self._recovery.stop_all(error)

    # Memory.

    def memory(self) -> MemoryUsage:
        """See `ModelRunner.memory`."""
        return memory_usage()

    def cache_stats(self) -> CacheStats | None:
        """See `ModelRunner.cache_stats`."""
        manager: CacheManager | None = getattr(self, "_cache_manager", None)  # None if another thread closed the runner
        return manager.stats() if manager is not None else None

    def clear_cache(self) -> int:
        """See `ModelRunner.clear_cache`."""
        freed = self._cache_manager.clear()
        mx.clear_cache()
        return freed

    def release_caches(self) -> None:
        """See `ModelRunner.release_caches`."""
        self._cache_manager.evict(self._cache_manager.bytes)
        release_unused_memory()

    def close(self) -> int:
        """See `ModelRunner.close`."""
        return measure_freed(self._release)

    def _release(self) -> None:
        self._active.reset()
        self._threads.close()
        self._cache_manager.close()
        if self._media is not None:
            self._media.close()
        del self._network, self._weights, self._preparer, self._threads, self._cache_manager, self._admission
        del self._active, self._pending, self._recovery, self._prefiller, self._media_queue, self._media

    def _end_over_budget(self) -> list[RunnerEvent]:
        """End requests until the next token of all others fits into memory."""
        events: list[RunnerEvent] = []
        while self._active.by_key and self._admission.is_over_budget():
            key = self._active.longest
            sequences = self._active.by_key[key]
            for sequence in sequences:
                sequence.distrust()  # storing its cache would take memory
            self._drop(key)
            events += [event for sequence in sequences for event in sequence.finish("capacity")]
        return events

    def _new_batch(self) -> Batch | SpeculativeBatch:
        network, preparer = self._network, self._preparer
        if isinstance(network, TargetDraftPair):
            return SpeculativeBatch(network, preparer.end_token_ids, preparer.xtc_special_tokens)
        return Batch(
            network,
            self.max_batch_size,
            self._max_prefill_batch,
            preparer.end_token_ids,
            preparer.xtc_special_tokens,
            positions=self.model.context_len,
            padding=self._max_padding_tokens,
        )
