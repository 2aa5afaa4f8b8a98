"""Compute prompts, a chunk in each step."""

import time
from collections.abc import Callable

from ...engine.interface import PrefillProgress, RunnerEvent, TokenDelta
from ..active_requests import ActiveRequests
from ..batching import Checkpoint, PromptProgress, RowCache
from ..cache_manager import CacheManager
from ..media_backend import MediaPrefill
from ..media_queue import MediaQueue
from ..recovery import failure
from ..sequence import Sequence
from .policy import PrefillPolicy
from .prompt_scoring import PromptScoring


class Prefiller:
    """The prefill of a runner.

    Args:
        active: The requests.
        cache_manager: Stores the computed caches.
        policy: Chooses the chunks.
        media_queue: The prompts whose media are not computed.
        recover: Stops all rows after an exception in a step, and returns the events of their last tokens.
    """

    def __init__(
        self,
        active: ActiveRequests,
        cache_manager: CacheManager,
        policy: PrefillPolicy,
        media_queue: MediaQueue,
        recover: Callable[[BaseException], list[RunnerEvent]],
    ) -> None:
        self.decode_s = 0.0
        """Duration of the last step that decoded, in seconds. Running answers wait for it and for a chunk in turns."""
        self._active = active
        self._cache_manager = cache_manager
        self._policy = policy
        self._media_queue = media_queue
        self._recover = recover

    def step(self) -> list[RunnerEvent]:
        """Compute a chunk of the prompts in work, and a part of the oldest prompt with media."""
        batch = self._active.batch
        running = batch.running
        waiting = len(self._active.in_batch) - running + len(self._media_queue)
        prompts = batch.admit_prompts(self._policy.max_batch_tokens(running, waiting))
        events = self._compute_media(prompts, running, waiting) if self._media_queue else []
        if not prompts:
            return events
        position = self._active.max_computed_tokens
        size = self._policy.chunk_size(running, prompts, position, waiting, batch.longest_remaining)
        started = time.perf_counter()
        try:
            progress = batch.prefill(size)
            at_checkpoint = [self._active.in_batch[prompt.uid] for prompt in progress if prompt.at_checkpoint]
            self._active.store_checkpoints(at_checkpoint, self._cache_manager)
        except BaseException as error:
            return events + self._recover(error)
        seconds = time.perf_counter() - started
        longest_chunk = 0
        for prompt in progress:
            sequence = self._active.in_batch[prompt.uid]
            before = sequence.computed_tokens
            events += self.advance(sequence, prompt)
            longest_chunk = max(longest_chunk, sequence.computed_tokens - before)
        if incomplete := sum(not prompt.is_complete for prompt in progress):
            step_s = seconds + (self.decode_s if running else 0.0)
            self._policy.record_step(step_s, running, incomplete, longest_chunk, position)
        return events

    def advance(self, sequence: Sequence, prompt: PromptProgress) -> list[RunnerEvent]:
        """Record a prompt's progress. Once only its last token remains, the other choices join the batch.

        Args:
            sequence: The choice whose prompt is computed.
            prompt: Its progress.
        """
        done, total = (count + sequence.prefix_tokens for count in (prompt.done, prompt.total))
        sequence.advance(done)
        is_whole_prompt = total == len(sequence.prompt)  # unlike that of a choice which joins later, or starts again
        events: list[RunnerEvent] = [PrefillProgress(sequence.key, done, total)] if is_whole_prompt else []
        if prompt.is_complete and sequence.is_prefill_only:
            choices = self._active.by_key[sequence.key]
            self._active.drop(sequence.key, self._cache_manager)
            events += [TokenDelta(choice.key, finish_reason="length", choice=choice.choice) for choice in choices]
        elif done == total - 1 and not sequence.is_prefill_only and self._active.waiting(sequence.key):
            assert sequence.uid is not None
            self._active.start_prefilled(sequence.key, self._active.batch.copy_cache(sequence.uid))
        return events

    def _compute_media(self, prompts: int, running: int, waiting: int) -> list[RunnerEvent]:
        """Compute a part of the oldest prompt that is computed by itself. At its end, it joins the batch."""
        sequence, prefill = self._media_queue.first
        size = self._policy.chunk_size(running, 1 + prompts, prefill.done, waiting)
        started = time.perf_counter()
        try:
            tokens = prefill.advance(size)
        except BaseException as error:  # no other request uses this cache
            self._media_queue.pop()
            self._active.drop(sequence.key, self._cache_manager)
            return [failure(sequence.key, error)]
        self._policy.record_step(time.perf_counter() - started, 0, 1, tokens, prefill.done - tokens)
        sequence.advance(prefill.done)
        if prefill.done == prefill.end:
            self._media_queue.pop()
            self._join_batch(sequence, prefill)
        events: list[RunnerEvent] = [PrefillProgress(sequence.key, prefill.done, len(sequence.prompt))]
        if isinstance(prefill, PromptScoring):
            events.append(TokenDelta(sequence.key, prompt_logprobs=prefill.take()))
        return events

    def _join_batch(self, sequence: Sequence, prefill: MediaPrefill) -> None:
        sequence.start_after(prefill.done)
        if prefill.done:
            cache = RowCache(prefill.cache, 0, prefill.done)
            self._cache_manager.store(sequence, Checkpoint(sequence.prompt[: prefill.done], cache))
        cache = prefill.cache if prefill.done else None
        self._active.start(self._cache_manager, self._active.by_key[sequence.key], cache)
