"""Run requests on a language model, all together in one batch.

A request passes six stages: prepare (in threads), admit, prefill, decode, parse (`Sequence.append_token`), deliver.
From `add` to its end, it is in one table. A step computes a chunk of the prompts in work, or a token for each running
answer, in turns.

After an exception in the middle of a step, no row's cache can be trusted, and one row may be the cause. So all rows
start again from their tokens, one by one: the rows at fault fail then, and the others continue. If rows fail together
that work alone, they all fail; if memory ran out, only the longest does.
"""

import copy
import time
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, wait
from typing import TYPE_CHECKING, Any, Final

import mlx.core as mx
from mlx import nn
from mlx_lm.models.cache import make_prompt_cache

from lmwire_protocol import Chat, Generate, RequestError, Tokenize
from lmwire_protocol.events import CacheMiss, CacheStats

from ..engine.interface import (
    AdmittedRequest,
    Failed,
    InferenceCommand,
    MemoryUsage,
    ModelInfo,
    PrefillProgress,
    Preparation,
    PreparedPrompt,
    RunnerEvent,
    Status,
    TokenDelta,
)
from ..engine.preparation import Prepared
from ..models.device_memory import is_out_of_memory, measure_freed, memory_usage, release_unused_memory
from ..models.tokenizer import Tokenizer
from ..output_parsing import Syntax
from .admission import Admission, MemoryBudget
from .batching import Batch, Decoding, PromptProgress, StepSpeeds, TargetDraftPair, prefill, supports_padding
from .cache_manager import CacheManager
from .caches import Checkpoint, RowCache, name_special_caches, supports_batching
from .prefill_policy import PrefillPolicy
from .preparation import RequestPreparer
from .request_table import ActiveRequest, RequestTable, Sequence
from .shared_prefill import Leader, SharedPrefill
from .solo_prefill import PromptScoring, SoloPrefill

if TYPE_CHECKING:
    from ..multimodal.processor import MultimodalProcessor
    from ..ranks import Ranks
    from .prefix_cache.disk_tier import DiskTier

MAX_DISK_WAIT_S: Final = 0.05
"""Maximum delay of a cancel while only the disk is busy."""
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
        ranks: The processes that hold the model together; None if this one does.
        looks_up: See `batching.Decoding`.
    """

    def __init__(
        self,
        network: nn.Module,
        tokenizer: Tokenizer,
        model: ModelInfo,
        budget: MemoryBudget,
        disk: "DiskTier | None" = None,
        media: "MultimodalProcessor | None" = None,
        *,
        batches: bool = True,
        weights: object = None,
        syntax: Syntax | None = None,
        ranks: "Ranks | None" = None,
        looks_up: bool = False,
    ) -> None:
        self.model = model
        self._looks_up = looks_up
        can_batch = batches and supports_batching(network)
        self.max_batch_size = MAX_BATCH_SIZE if can_batch else 1
        self._has_plain_caches = not name_special_caches(make_prompt_cache(network))
        may_pad = can_batch and (self._has_plain_caches or ranks is None)  # each rank would try its own states
        self._supports_padding: bool | None = None if may_pad else False
        """True if prompts of different lengths may be prefilled together; None until two of them wait."""
        self.network = network
        self._weights = weights
        self.media = media
        self.preparer = RequestPreparer(tokenizer, model, budget.total_bytes, media, syntax)
        self.table = RequestTable()
        self.policy = PrefillPolicy()
        self.cache = CacheManager(
            network,
            budget,
            self.preparer.eos_token_ids,
            disk,
            media.feature_cache if media else None,
            lambda: self.table.media_inputs,
            self.policy.prefill_s,
        )
        self.admission = Admission(budget, self.cache)
        self.max_padding_tokens = budget.max_padding_tokens
        self._batch: Batch | None = None
        self._restarted: set[Sequence] = set()
        """The sequences that were stopped since the last successful step."""
        self.prefills_next = True
        """True if the next step computes prompts, if there are any."""
        self.decode_s = 0.0
        """Duration of the last step that decoded, in seconds. Running answers wait for it and for a chunk in turns."""
        self.step_speeds = None if ranks else StepSpeeds()
        """Durations of steps. Ranks must decide alike, so that they have none."""
        self._ranks = ranks
        self._decide: Callable[[Callable[[], int]], int] = ranks.decide if ranks else lambda choose: choose()
        """Makes a choice by the clock, which all ranks must make alike."""

    # Prepare.

    @property
    def batch_wait_s(self) -> float:
        """See `ModelRunner.batch_wait_s`."""
        return self.policy.batch_wait_s if len(self.table) < self._max_prefill_batch else 0.0

    @property
    def _max_prefill_batch(self) -> int:
        return 1 if self._supports_padding is False else MAX_PREFILL_BATCH

    def prepare(
        self,
        request: InferenceCommand | Tokenize,
        ready: Callable[[], None],
        size: int = 0,
        *,
        share: Callable[[PreparedPrompt], None] | None = None,
        prompt: PreparedPrompt | None = None,
    ) -> Preparation | None:
        """See `RankRunner.prepare`."""
        is_served = isinstance(request, Generate | Chat | Tokenize)
        return self.preparer.start(request, ready, size, share, prompt) if is_served else None

    def tokenize(self, request: Tokenize, prepared: Preparation | None = None) -> tuple[list[int], str]:
        """See `ModelRunner.tokenize`."""
        prompt = prepared.result() if isinstance(prepared, Prepared) else self.preparer.read_prompt(request)
        return prompt.tokens, prompt.text

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
        ready = prepared.result() if isinstance(prepared, Prepared) else self.preparer.prepare(request)
        sequences = self.preparer.build_sequences(key, request, seed, ready, plain_text=plain_text)
        first = sequences[0]
        self.cache.check_pin(first)
        media_bytes = sum(media.nbytes for media in first.media_inputs)
        self.admission.check(self.table.lengths, len(first.prompt), request.max_tokens, request.n, media_bytes)
        admitted = AdmittedRequest(len(first.prompt))
        self.table.add(key, ActiveRequest(admitted, sequences, self.cache.start_reading(first)))
        return admitted

    # Step.

    def step(self) -> list[RunnerEvent]:
        """See `ModelRunner.step`."""
        if stopped := self.table.stopped:
            return self._restart(stopped)
        if events := self.start_waiting():
            return events  # a host sees how much was cached before the first chunk, which can take long
        if not self.table.in_batch and not self.table.solo:
            self._wait_for_disk()
        elif self.prefills_next and (self.table.solo or self.batch.has_prompts):
            self.prefills_next = False
            events += self._prefill() + self._end_over_budget()
        else:
            events += self._decode()
        return events

    def remove(self, key: int) -> list[RunnerEvent]:
        """See `ModelRunner.remove`."""
        return [event for sequence in self.drop(key) for event in sequence.finish(None)]

    def drop(self, key: int) -> list[Sequence]:
        """Remove a request in whatever state, store what was computed of it, and return its sequences.

        Args:
            key: The request. One that is absent has no sequences.
        """
        sequences = self.table.remove(key)
        if self._batch is not None:
            for sequence in sequences:
                self._store(sequence)
            self._batch.drop(sequences)
        return sequences

    # Start: after the cached tokens, with the media of the prompt if those are not computed, or in the batch.

    def start_waiting(self) -> list[RunnerEvent]:
        """Start the requests that need not wait for the disk, nor for a prefill of the same prompt."""
        events: list[RunnerEvent] = []
        running = self._batch.running if self._batch is not None else 0
        shared: SharedPrefill | None = None
        for request in self.table.waiting:
            first = request.first
            if shared is None and self.table.in_batch:  # the first of them may be in the batch only now
                shared = SharedPrefill(
                    self.table,
                    self.cache,
                    lambda tokens: self._decide(lambda: self.policy.is_worth_a_chunk(tokens, running)),
                )
            is_reading = request.read is not None and not request.read.done()
            if is_reading or self._waits(first, shared.leader(request) if shared else None):
                continue
            try:
                self._start(request)
            except BaseException as error:
                events += self._fail(first.key, error)
            else:
                if not first.has_restarted:
                    events.append(PrefillProgress(first.key, first.prefix_tokens, len(first.prompt)))
        return events

    def _waits(self, sequence: Sequence, leader: Leader | None) -> bool:
        """Return whether a sequence waits for its leader's prefill. Otherwise cache what is computed of its leader.

        Args:
            sequence: The first choice of a waiting request.
            leader: The prompt in the batch that begins like it; None without any.
        """
        if leader is None:
            return False
        if leader.is_worth_waiting and self.batch.prefills_before(leader.row, len(sequence.prompt)):
            self.batch.pause_at(leader.row, leader.until)
            return True
        if not self.cache.needs_snapshots:
            self._store(leader.row)
        return False

    def _start(self, request: ActiveRequest) -> None:
        first = request.first
        if isinstance(first.request, Generate) and first.request.prompt_logprobs:
            vocab_size, count = self.model.vocab_size, first.request.top_logprobs
            scoring = PromptScoring(self.network, first.prompt, vocab_size, count, self.preparer.format_logprob)
            self._start_solo(request, scoring)
            return
        hit = self.cache.find(first, request.read.result() if request.read else None)
        first.start_from(hit)
        cache = hit.cache if hit and not hit.needs_verification else None
        request.admitted.cached_tokens = first.prefix_tokens
        if first.request.cache_report:
            request.admitted.cache_miss = self._cache_miss(first)
        if self.media and first.media and first.prefix_tokens < first.media.end:
            tokens = first.prompt[: first.media.end if self.cache.needs_snapshots else -1]
            self._start_solo(request, self.media.prefill(first.media, tokens, cache, first.prefix_tokens))
            return
        if self.media and first.media and cache:
            self.media.set_rope_delta(first.media, first.prompt, cache)
        self._join_batch(request, cache)

    def _cache_miss(self, sequence: Sequence) -> CacheMiss | None:
        """Return where a prompt ceases to be cached. The text in the cache is not told: it may be another user's."""
        found = self.cache.explain_miss(sequence, sequence.prefix_tokens)
        if found is None:
            return None
        known, differs = found
        is_other = differs and known < len(sequence.prompt) - 1
        return CacheMiss(known, self.preparer.format_logprob.text(sequence.prompt[known]) if is_other else None)

    def _start_solo(self, request: ActiveRequest, solo: SoloPrefill) -> None:
        request.solo = solo
        request.first.status = Status.PREFILLING

    def _join_batch(self, request: ActiveRequest, cache: list[Any] | None) -> None:
        """Put a request into the batch. If its prompt is not cached, one choice computes it for all.

        Args:
            request: The request.
            cache: The cache of the first `prefix_tokens` of the prompt; None for an empty one.
        """
        first = request.first
        is_shared = len(first.prompt) - first.prefix_tokens > 1
        for sequence in request.sequences[:1] if is_shared else request.sequences:
            checkpoints = self.cache.checkpoints(sequence)
            self.batch.add(
                sequence, sequence.prompt, copy.deepcopy(cache), first.prefix_tokens, checkpoints, sequence.key
            )
            sequence.status = Status.PREFILLING

    def _join_prefilled(self, key: int, cache: list[Any]) -> None:
        """Put the waiting choices of a request into the batch.

        Args:
            key: The request.
            cache: The cache of all tokens of each choice but the last.
        """
        for sequence in self.table[key].waiting:
            self.batch.add_prefilled(sequence, sequence.tokens, copy.deepcopy(cache))
            sequence.status = Status.PREFILLING

    def _wait_for_disk(self) -> None:
        wait([request.read for request in self.table.waiting if request.read], MAX_DISK_WAIT_S, FIRST_COMPLETED)

    # Prefill: a chunk of the prompts in work, and a part of the oldest prompt that is computed by itself.

    def _prefill(self) -> list[RunnerEvent]:
        batch, solo = self.batch, self.table.solo
        running = batch.running
        waiting = len(self.table.in_batch) - running + len(solo) + len(self.table.waiting)
        prompts = batch.admit_prompts(self._decide(lambda: self.policy.max_batch_tokens(running, waiting)))
        events = self._prefill_solo(solo[0], prompts, running, waiting) if solo else []
        if not prompts:
            return events
        position = self.table.max_computed_tokens
        remaining = batch.longest_remaining
        size = self._decide(lambda: self.policy.chunk_size(running, prompts, position, waiting, remaining))
        started = time.perf_counter()
        try:
            progress = batch.prefill(size)
            for prompt in progress:
                if prompt.at_checkpoint and self.cache.stores_prompt(prompt.row):
                    self._store(prompt.row)
        except BaseException as error:
            return events + self._recover(error)
        seconds = time.perf_counter() - started
        longest_chunk = 0
        for prompt in progress:
            before = prompt.row.computed_tokens
            events += self._advance(prompt)
            longest_chunk = max(longest_chunk, prompt.row.computed_tokens - before)
        if incomplete := sum(not prompt.is_complete for prompt in progress):
            step_s = seconds + (self.decode_s if running else 0.0)
            self.policy.record_step(step_s, running, incomplete, longest_chunk, position)
        return events

    def _advance(self, prompt: PromptProgress) -> list[RunnerEvent]:
        """Record a prompt's progress. Once only its last token remains, the other choices join the batch."""
        sequence: Sequence = prompt.row
        done, total = (count + sequence.prefix_tokens for count in (prompt.done, prompt.total))
        sequence.advance(done)
        is_whole_prompt = total == len(sequence.prompt)  # unlike that of a choice which joins later
        reports = is_whole_prompt and not sequence.has_restarted
        events: list[RunnerEvent] = [PrefillProgress(sequence.key, done, total)] if reports else []
        if prompt.is_complete and sequence.is_prefill_only:
            choices = self.drop(sequence.key)
            return events + [TokenDelta(choice.key, finish_reason="length", choice=choice.choice) for choice in choices]
        if prompt.is_complete:
            sequence.status = Status.DECODING
        elif done == total - 1 and not sequence.is_prefill_only and self.table[sequence.key].waiting:
            self._join_prefilled(sequence.key, self.batch.copy_cache(sequence))
        return events

    def _prefill_solo(self, request: ActiveRequest, prompts: int, running: int, waiting: int) -> list[RunnerEvent]:
        """Compute a part of a prompt that is computed by itself. At its end, it joins the batch."""
        sequence, solo = request.first, request.solo
        assert solo is not None
        size = self._decide(lambda: self.policy.chunk_size(running, 1 + prompts, solo.done, waiting))
        started = time.perf_counter()
        try:
            tokens = solo.advance(size)
        except BaseException as error:  # no other request uses this cache
            return self._fail(sequence.key, error)
        self.policy.record_step(time.perf_counter() - started, 0, 1, tokens, solo.done - tokens)
        sequence.advance(solo.done)
        if solo.done == solo.end:
            request.solo = None
            self._join_after_solo(request, solo)
        events: list[RunnerEvent] = [PrefillProgress(sequence.key, solo.done, len(sequence.prompt))]
        if isinstance(solo, PromptScoring):
            events.append(TokenDelta(sequence.key, prompt_logprobs=solo.take()))
        return events

    def _join_after_solo(self, request: ActiveRequest, solo: SoloPrefill) -> None:
        first = request.first
        first.start_after(solo.done)
        if solo.done:
            cache = RowCache(solo.cache, 0, solo.done)
            self.cache.store(first, Checkpoint(first.prompt[: solo.done], cache))
        self._join_batch(request, solo.cache if solo.done else None)

    # Decode.

    def _decode(self) -> list[RunnerEvent]:
        batch = self.batch
        events: list[RunnerEvent] = []
        started = time.perf_counter()
        try:
            for prompt in batch.start_decoding():
                if prompt.row.status is not Status.ENDED:  # with another choice of its request
                    events += self._advance(prompt)
            if rows := batch.first_tokens():
                events += self._deliver(rows)
                self.prefills_next = not batch.running  # else the next step of these rows comes first
                return events + self._end_over_budget()
            running = batch.running
            rows = batch.decode()
        except BaseException as error:
            return events + self._recover(error)
        self._restarted.clear()  # all rows work together
        self.decode_s = decode_s = time.perf_counter() - started
        if self.prefills_next:  # after a chunk, a step is short: the chunk's duration covers its start
            self.policy.record_step(decode_s, running, 0, 0, 0)
        self.prefills_next = True
        return events + self._deliver(rows) + self._end_over_budget()

    # Deliver: the only loop over a step's tokens.

    def _deliver(self, rows: list[Sequence]) -> list[RunnerEvent]:
        """Return the events of rows. Store those that have ended, and remove them from the table and the batch."""
        events: list[RunnerEvent] = []
        ended: list[Sequence] = []
        taken_back: list[Sequence] = []
        try:
            for row in rows:
                if row.key not in self.table:
                    continue  # another choice of the request has just failed
                new = row.take_events()
                events += new
                if row.status is Status.ENDED:
                    ended.append(row)
                    self.table.end(row)
                    self._store(row)
                    if isinstance(new[-1], Failed):
                        self.drop(row.key)
                elif row.is_taken_back:
                    taken_back.append(row)
            if ended and self._batch is not None:
                self._batch.drop(ended)
            for row in taken_back:
                is_ended = row.status is Status.ENDED  # with another choice of its request
                if self._batch is not None and not is_ended:  # after a failed step, all rows start again anyway
                    self._go_back(row)
        except BaseException as error:
            events += self._recover(error)
        return events

    def _go_back(self, sequence: Sequence) -> None:
        """Let a sequence go on from the tokens that it has kept, in the batch."""
        cache, length = self.cache.cut(sequence, self.batch.checkpoint(sequence))
        self.batch.drop([sequence])
        if self.media and sequence.media:
            if cache is None or length < sequence.media.end:
                sequence.status = Status.RESTARTING  # the prompt is computed by itself
                return
            self.media.set_rope_delta(sequence.media, sequence.prompt, cache)
        sequence.restart()
        sequence.start_after(length)
        if length == sequence.length - 1 and cache is not None:
            self.batch.add_prefilled(sequence, sequence.tokens, cache)
        else:
            self.batch.add(sequence, sequence.tokens, cache, length, order=sequence.key)
        sequence.status = Status.PREFILLING

    def _store(self, sequence: Sequence) -> None:
        """Store what was computed of a sequence in the batch, if anything was, and if that is trusted."""
        if sequence.is_trusted and self._batch is not None:
            self.cache.store(sequence, self._batch.checkpoint(sequence))

    def _end_over_budget(self) -> list[RunnerEvent]:
        """End requests until the next token of all others fits into memory."""
        events: list[RunnerEvent] = []
        while self.table and self.admission.is_over_budget(self.table.lengths):
            key = self.table.longest
            for sequence in self.table[key].sequences:
                sequence.distrust()  # storing its cache would take memory
            events += [event for sequence in self.drop(key) for event in sequence.finish("capacity")]
        return events

    # Failures.

    def _fail(self, key: int, error: BaseException) -> list[RunnerEvent]:
        """Drop a request, and return the event of its failure. Raise it if other ranks may not have had it."""
        if self._ranks:
            raise error
        self.drop(key)
        code = "out_of_memory" if is_out_of_memory(error) else "engine_error"
        return [Failed(key, RequestError(code, f"the model failed: {type(error).__name__}: {error}"))]

    def _recover(self, error: BaseException) -> list[RunnerEvent]:
        """Take all rows of a failed step out of the batch, to restart them; fail those that failed again.

        Args:
            error: The exception of the step. It is raised if other ranks may not have had it.
        """
        if self._ranks:
            raise error
        rows = self.table.in_batch
        for row in rows:
            row.distrust()
        self.discard_batch()
        events = self._deliver(rows)  # of tokens from before the failure
        rows = self.table.in_batch
        failed: list[Sequence] = []
        if not self._restarted.issuperset(rows):
            self._restarted.update(rows)
            if is_out_of_memory(error):
                self.cache.evict(self.cache.bytes)
        elif rows:
            failed = [max(rows, key=lambda row: row.length)] if is_out_of_memory(error) else rows
        for row in rows:
            row.status = Status.RESTARTING
        for key in dict.fromkeys(row.key for row in failed):
            events += self._fail(key, error)
        return events

    def _restart(self, sequence: Sequence) -> list[RunnerEvent]:
        """Compute the cache of a stopped sequence, and put it into a batch again."""
        sequence.restart()
        try:
            cache, cached_tokens = None, 0
            if self.media and sequence.media:
                cache = self.media.compute_cache(sequence.media, sequence.prompt[:-1])
                cached_tokens = len(sequence.prompt) - 1
            cache = prefill(self.network, sequence.tokens, cache, cached_tokens)
        except BaseException as error:
            return self._fail(sequence.key, error)
        self._join_prefilled(sequence.key, cache)
        return []

    # The batch.

    @property
    def batch(self) -> Batch:
        """The batch. It is made when it is first used."""
        if self._batch is None:
            self._batch = self._new_batch()
        return self._batch

    def discard_batch(self) -> None:
        """Discard the batch with all of its rows. The next request gets a new one."""
        if self._batch is not None:
            self._batch.close()
            self._batch = None

    def _new_batch(self) -> Batch:
        network, preparer = self.network, self.preparer
        decoding = Decoding(
            preparer.end_token_ids,
            preparer.xtc_special_tokens,
            self.model.context_len,
            looks_up=self._looks_up,
            draft=network if isinstance(network, TargetDraftPair) else None,
            several_rows=self.may_step_unevenly,
            speeds=self.step_speeds,
        )
        padding = self.max_padding_tokens
        return Batch(network, self.max_batch_size, self._max_prefill_batch, decoding, padding, self.may_pad)

    def may_step_unevenly(self) -> bool:
        """Return whether several rows may get different numbers of tokens in a step.

        On a CPU, a step takes nearly as many times longer as it computes tokens, and some of them are padding. The
        positions of a prompt with media are not those of its tokens.
        """
        return mx.default_device() == mx.gpu and self.media is None and self._has_plain_caches and self.may_pad()

    def may_pad(self) -> bool:
        """Return whether the model computes padded prompts correctly.

        The first call finds out, which takes as long as eight short prompts, or twelve with recurrent states. It comes
        right before the first prompts that are computed together: a process that answers one question never makes it.
        """
        if self._supports_padding is None:
            try:
                self._supports_padding = supports_padding(self.network)
            except Exception:  # the architecture's own code: whatever it raises, it computes one prompt at a time
                self._supports_padding = False
        return self._supports_padding

    # Memory.

    def memory(self) -> MemoryUsage:
        """See `ModelRunner.memory`."""
        return memory_usage()

    def cache_stats(self) -> CacheStats | None:
        """See `ModelRunner.cache_stats`."""
        return self.cache.stats()

    def clear_cache(self) -> int:
        """See `ModelRunner.clear_cache`."""
        freed = self.cache.clear()
        mx.clear_cache()
        return freed

    def release_caches(self) -> None:
        """See `ModelRunner.release_caches`."""
        self.cache.evict(self.cache.bytes)
        release_unused_memory()

    def close(self) -> int:
        """See `ModelRunner.close`."""
        return measure_freed(self._release)

    def _release(self) -> None:
        self.discard_batch()
        self.preparer.close()
        self.cache.close()
        if self.media is not None:
            self.media.close()
        del self.network, self._weights, self.preparer, self.admission
        del self.table, self.media
