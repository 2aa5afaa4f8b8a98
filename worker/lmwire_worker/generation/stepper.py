"""Compute the requests of a table, one step at a time: start, prefill, decode, deliver, and restart after a failure.

A step computes a chunk of the prompts in work, or a token for each running answer, in turns.

After an exception in the middle of a step, no row's cache can be trusted, and one row may be the cause. So all rows
start again from their tokens, one by one: the rows at fault fail then, and the others continue. If rows fail together
that work alone, they all fail; if memory ran out, only the longest does.
"""

import copy
import time
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, wait
from typing import Any, Final

from mlx import nn

from lmwire_protocol import Generate, RequestError

from ..engine.interface import Failed, ModelInfo, PrefillProgress, RunnerEvent, TokenDelta
from ..models.device_memory import is_out_of_memory
from .admission import Admission
from .batching import Batch, Checkpoint, PromptProgress, RowCache, SpeculativeBatch, prefill
from .cache_manager import CacheManager
from .media_backend import MediaBackend
from .prefill_policy import PrefillPolicy
from .request_table import ActiveRequest, RequestTable
from .sampling.logprobs import LogprobFormatter
from .sequence import Sequence, Status
from .solo_prefill import PromptScoring, SoloPrefill

MAX_DISK_WAIT_S: Final = 0.05
"""Maximum delay of a cancel while only the disk is busy."""


class Stepper:
    """The steps of one model.

    Args:
        network: The model.
        model: Its description.
        table: The requests.
        cache: The cached prompts and answers.
        admission: Decides whether the next token fits into memory.
        policy: Chooses the chunks.
        new_batch: Makes an empty batch.
        media: Computes prompts with media; None for a model without.
        format_logprob: Turns a log-probability into the form of the protocol.
    """

    def __init__(
        self,
        network: nn.Module,
        model: ModelInfo,
        table: RequestTable,
        cache: CacheManager,
        admission: Admission,
        policy: PrefillPolicy,
        new_batch: Callable[[], Batch | SpeculativeBatch],
        media: MediaBackend | None,
        format_logprob: LogprobFormatter,
    ) -> None:
        self._network = network
        self._model = model
        self._table = table
        self._cache = cache
        self._admission = admission
        self._policy = policy
        self._new_batch = new_batch
        self._media = media
        self._format_logprob = format_logprob
        self._batch: Batch | SpeculativeBatch | None = None
        self._restarted: set[Sequence] = set()
        """The sequences that were stopped since the last successful step."""
        self._prefills_next = True
        """True if the next step computes prompts, if there are any."""
        self._decode_s = 0.0
        """Duration of the last step that decoded, in seconds. Running answers wait for it and for a chunk in turns."""

    @property
    def batch(self) -> Batch | SpeculativeBatch:
        """The batch. It is made when it is first used."""
        if self._batch is None:
            self._batch = self._new_batch()
        return self._batch

    def discard_batch(self) -> None:
        """Discard the batch with all of its rows. The next request gets a new one."""
        if self._batch is not None:
            self._batch.close()
            self._batch = None

    def step(self) -> list[RunnerEvent]:
        """Make one step, and return its events. There is at least one request."""
        if stopped := self._table.stopped:
            return self._restart(stopped)
        events = self.start_waiting()
        if not self._table.in_batch and not self._table.solo:
            self._wait_for_disk()
        elif self._prefills_next and (self._table.solo or self.batch.has_prompts):
            self._prefills_next = False
            events += self._prefill() + self._end_over_budget()
        else:
            events += self._decode()
        return events

    def drop(self, key: int) -> list[Sequence]:
        """Remove a request in whatever state, store what was computed of it, and return its sequences.

        Args:
            key: The request. One that is absent has no sequences.
        """
        sequences = self._table.remove(key)
        if self._batch is not None:
            for sequence in sequences:
                self._store(sequence)
            self._batch.drop(sequences)
        return sequences

    # Start: after the cached tokens, with the media of the prompt if those are not computed, or in the batch.

    def start_waiting(self) -> list[RunnerEvent]:
        """Start the requests that need not wait for the disk, nor for a prefill of the same prompt."""
        events: list[RunnerEvent] = []
        for request in self._table.waiting:
            first = request.first
            is_reading = request.read is not None and not request.read.done()
            if is_reading or any(self._cache.should_wait_for(running, first) for running in self._table.in_batch):
                continue
            try:
                self._start(request)
            except BaseException as error:
                events += self._fail(first.key, error)
        return events

    def _start(self, request: ActiveRequest) -> None:
        first = request.first
        if isinstance(first.request, Generate) and first.request.prompt_logprobs:
            vocab_size, count = self._model.vocab_size, first.request.top_logprobs
            scoring = PromptScoring(self._network, first.prompt, vocab_size, count, self._format_logprob)
            self._start_solo(request, scoring)
            return
        hit = self._cache.find(first, request.read.result() if request.read else None)
        first.start_from(hit)
        cache = hit.cache if hit and not hit.needs_verification else None
        request.admitted.cached_tokens = first.prefix_tokens
        if self._media and first.media and first.prefix_tokens < first.media.end:
            tokens = first.prompt[: first.media.end if self._cache.needs_snapshots else -1]
            self._start_solo(request, self._media.prefill(first.media, tokens, cache, first.prefix_tokens))
            return
        if self._media and first.media and cache:
            self._media.set_rope_delta(first.media, first.prompt, cache)
        self._join_batch(request, cache)

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
            checkpoints = self._cache.checkpoints(sequence)
            self.batch.add(sequence, sequence.prompt, copy.deepcopy(cache), first.prefix_tokens, checkpoints)
            sequence.status = Status.PREFILLING

    def _join_prefilled(self, key: int, cache: list[Any]) -> None:
        """Put the waiting choices of a request into the batch.

        Args:
            key: The request.
            cache: The cache of all tokens of each choice but the last.
        """
        for sequence in self._table[key].waiting:
            self.batch.add_prefilled(sequence, sequence.tokens, copy.deepcopy(cache))
            sequence.status = Status.PREFILLING

    def _wait_for_disk(self) -> None:
        wait([request.read for request in self._table.waiting if request.read], MAX_DISK_WAIT_S, FIRST_COMPLETED)

    # Prefill: a chunk of the prompts in work, and a part of the oldest prompt that is computed by itself.

    def _prefill(self) -> list[RunnerEvent]:
        batch, solo = self.batch, self._table.solo
        running = batch.running
        waiting = len(self._table.in_batch) - running + len(solo)
        prompts = batch.admit_prompts(self._policy.max_batch_tokens(running, waiting))
        events = self._prefill_solo(solo[0], prompts, running, waiting) if solo else []
        if not prompts:
            return events
        position = self._table.max_computed_tokens
        size = self._policy.chunk_size(running, prompts, position, waiting, batch.longest_remaining)
        started = time.perf_counter()
        try:
            progress = batch.prefill(size)
            for prompt in progress:
                if prompt.at_checkpoint:
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
            step_s = seconds + (self._decode_s if running else 0.0)
            self._policy.record_step(step_s, running, incomplete, longest_chunk, position)
        return events

    def _advance(self, prompt: PromptProgress) -> list[RunnerEvent]:
        """Record a prompt's progress. Once only its last token remains, the other choices join the batch."""
        sequence: Sequence = prompt.row
        done, total = (count + sequence.prefix_tokens for count in (prompt.done, prompt.total))
        sequence.advance(done)
        is_whole_prompt = total == len(sequence.prompt)  # unlike that of a choice which joins later, or starts again
        events: list[RunnerEvent] = [PrefillProgress(sequence.key, done, total)] if is_whole_prompt else []
        if prompt.is_complete and sequence.is_prefill_only:
            choices = self.drop(sequence.key)
            return events + [TokenDelta(choice.key, finish_reason="length", choice=choice.choice) for choice in choices]
        if prompt.is_complete:
            sequence.status = Status.DECODING
        elif done == total - 1 and not sequence.is_prefill_only and self._table[sequence.key].waiting:
            self._join_prefilled(sequence.key, self.batch.copy_cache(sequence))
        return events

    def _prefill_solo(self, request: ActiveRequest, prompts: int, running: int, waiting: int) -> list[RunnerEvent]:
        """Compute a part of a prompt that is computed by itself. At its end, it joins the batch."""
        sequence, solo = request.first, request.solo
        assert solo is not None
        size = self._policy.chunk_size(running, 1 + prompts, solo.done, waiting)
        started = time.perf_counter()
        try:
            tokens = solo.advance(size)
        except BaseException as error:  # no other request uses this cache
            return self._fail(sequence.key, error)
        self._policy.record_step(time.perf_counter() - started, 0, 1, tokens, solo.done - tokens)
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
            self._cache.store(first, Checkpoint(first.prompt[: solo.done], cache))
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
                self._prefills_next = not batch.running  # else the next step of these rows comes first
                return events + self._end_over_budget()
            running = batch.running
            rows = batch.decode()
        except BaseException as error:
            return events + self._recover(error)
        self._restarted.clear()  # all rows work together
        self._decode_s = decode_s = time.perf_counter() - started
        if self._prefills_next:  # after a chunk, a step is short: the chunk's duration covers its start
            self._policy.record_step(decode_s, running, 0, 0, 0)
        self._prefills_next = True
        return events + self._deliver(rows) + self._end_over_budget()

    # Deliver: the only loop over a step's tokens.

    def _deliver(self, rows: list[Sequence]) -> list[RunnerEvent]:
        """Return the events of rows. Store those that have ended, and remove them from the table and the batch."""
        events: list[RunnerEvent] = []
        ended: list[Sequence] = []
        try:
            for row in rows:
                if row.key not in self._table:
                    continue  # another choice of the request has just failed
                new = row.take_events()
                events += new
                if row.status is Status.ENDED:
                    ended.append(row)
                    self._table.end(row)
                    self._store(row)
                    if isinstance(new[-1], Failed):
                        self.drop(row.key)
            if ended and self._batch is not None:
                self._batch.drop(ended)
        except BaseException as error:
            events += self._recover(error)
        return events

    def _store(self, sequence: Sequence) -> None:
        """Store what was computed of a sequence in the batch, if anything was, and if that is trusted."""
        if sequence.is_trusted and self._batch is not None:
            self._cache.store(sequence, self._batch.checkpoint(sequence))

    def _end_over_budget(self) -> list[RunnerEvent]:
        """End requests until the next token of all others fits into memory."""
        events: list[RunnerEvent] = []
        while self._table and self._admission.is_over_budget(self._table.lengths):
            key = self._table.longest
            for sequence in self._table[key].sequences:
                sequence.distrust()  # storing its cache would take memory
            events += [event for sequence in self.drop(key) for event in sequence.finish("capacity")]
        return events

    # Failures.

    def _fail(self, key: int, error: BaseException) -> list[RunnerEvent]:
        """Drop a request, and return the event of its failure."""
        self.drop(key)
        code = "out_of_memory" if is_out_of_memory(error) else "engine_error"
        return [Failed(key, RequestError(code, f"the model failed: {type(error).__name__}: {error}"))]

    def _recover(self, error: BaseException) -> list[RunnerEvent]:
        """Take all rows of a failed step out of the batch, to restart them; fail those that failed again.

        Args:
            error: The exception of the step.
        """
        rows = self._table.in_batch
        for row in rows:
            row.distrust()
        self.discard_batch()
        events = self._deliver(rows)  # of tokens from before the failure
        rows = self._table.in_batch
        failed: list[Sequence] = []
        if not self._restarted.issuperset(rows):
            self._restarted.update(rows)
            if is_out_of_memory(error):
                self._cache.evict(self._cache.bytes)
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
            if self._media and sequence.media:
                cache = self._media.compute_cache(sequence.media, sequence.prompt[:-1])
                cached_tokens = len(sequence.prompt) - 1
            cache = prefill(self._network, sequence.tokens, cache, cached_tokens)
        except BaseException as error:
            return self._fail(sequence.key, error)
        self._join_prefilled(sequence.key, cache)
        return []
