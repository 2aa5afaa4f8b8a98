"""The text lane: requests on a language model that mlx-lm loaded, answered together."""

import copy
import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import mlx.core as mx
from mlx import nn
from mlx_lm.tokenizer_utils import TokenizerWrapper

from lmwire_protocol import Chat, Generate, RequestError, Tokenize
from lmwire_protocol.events import CacheStats

from ..engine.interface import (
    AdmittedRequest,
    Failed,
    InferenceCommand,
    MemoryUsage,
    ModelInfo,
    PrefillProgress,
    Preparation,
    RunnerEvent,
    TokenDelta,
)
from ..engine.preparation import Prepared
from ..models.memory_budget import is_out_of_memory, measure_freed, memory_usage
from .admission import Admission, MemoryBudget
from .batching import (
    LengthBucketedBatch,
    PromptProgress,
    RowCache,
    SpeculativeBatch,
    TargetDraftPair,
    prefill,
    supports_batching,
    supports_padding,
)
from .cache_manager import CacheManager
from .pending import PendingRequest, PendingRequests
from .prefill.policy import PrefillPolicy
from .prefix_cache import DiskTier
from .preparation_threads import PreparationThreads
from .request_preparation import RequestPreparer
from .sequence import Sequence

if TYPE_CHECKING:
    from ..multimodal.media_input import Picture
    from ..multimodal.prefill import ImagePrefill
    from ..multimodal.processor import Sight

MAX_BATCH_SIZE: Final = 32
MAX_PREFILL_BATCH: Final = 16


class GenerationRunner:
    """See `lmwire_worker.engine.interface.ModelRunner`.

    Args:
        network: The model with its weights in memory; a `Pair` where another one proposes its tokens.
        tokenizer: The model's own.
        model: What is reported of it.
        room: The memory that there is.
        disk: What is kept of prompts and answers beyond the process; None for nothing.
        sight: Of a model that sees.
    """

    def __init__(
        self,
        network: nn.Module,
        tokenizer: TokenizerWrapper,
        model: ModelInfo,
        room: MemoryBudget,
        disk: DiskTier | None = None,
        sight: "Sight | None" = None,
    ) -> None:
        self.model = model
        self.max_batch_size = (
            MAX_BATCH_SIZE if supports_batching(network) and not isinstance(network, TargetDraftPair) else 1
        )
        self._prompts_together = 1
        self._network = network
        self._preparer = RequestPreparer(tokenizer, model, room.total_bytes, sight)
        self._preparations = PreparationThreads(self._preparer, sight)
        self._cache_manager = CacheManager(
            network, room, self._preparer.eos_token_ids, disk, sight.shelf if sight else None
        )
        self._admission = Admission(room, self._cache_manager, self._lengths)
        self._padding = room.max_padding_tokens
        self._policy = PrefillPolicy()
        self._requests: dict[int, list[Sequence]] = {}
        """The streams of each key that have not ended."""
        self._by_uid: dict[int, Sequence] = {}
        self._pending = PendingRequests(self._cache_manager, self._by_uid)
        self._broken: deque[Sequence] = deque()
        """After an exception in a step: the streams that wait to be started again."""
        self._restarted: set[Sequence] = set()
        """Those that were, since the last step that went well."""
        self._generator: LengthBucketedBatch | SpeculativeBatch | None = None
        self._prefills_next = True
        """Whether the next step is one of prompts, if there are any."""
        self._decoded_s = 0.0
        """What the last step of answers took."""
        self._media = sight
        self._unseen: deque[tuple[Sequence, ImagePrefill]] = deque()
        """The streams whose prompt has images that are yet to be processed, with that work."""
        if sight:
            sight.shelf.in_use = self._shown

    @property
    def batch_wait_s(self) -> float:
        return self._policy.batch_wait_s if len(self._requests) < self._prompts_together else 0.0

    def prepare(
        self, request: InferenceCommand | Tokenize, ready: Callable[[], None], size: int = 0
    ) -> Preparation | None:
        takes = isinstance(request, Generate | Chat | Tokenize)
        return self._preparations.start(request, ready, size) if takes else None

    def add(
        self,
        key: int,
        request: InferenceCommand,
        seed: int,
        *,
        plain_text: bool = False,
        prepared: Preparation | None = None,
    ) -> AdmittedRequest:
        assert isinstance(request, Generate | Chat)
        ready = prepared.result() if isinstance(prepared, Prepared) else self._preparer.prepare(request)
        streams = self._preparer.build_sequences(key, request, seed, ready, plain_text=plain_text)
        first = streams[0]
        self._cache_manager.check_pin(first)
        media_bytes = sum(picture.nbytes for picture in _shown(first))
        self._admission.check(len(first.prompt), request.max_tokens, request.n, media_bytes)
        arrival = PendingRequest(AdmittedRequest(len(first.prompt)), streams, self._cache_manager.start_reading(first))
        if not self._pending.hold(key, arrival):
            self._begin(arrival)
        self._requests[key] = streams
        return arrival.admitted

    def step(self) -> list[RunnerEvent]:
        if self._broken:
            return self._restart(self._broken.popleft())
        outcomes = self._begin_arrivals()
        if not self._by_uid and not self._unseen:
            self._pending.wait_for_disk()
        elif self._prefills_next and (self._unseen or self._batch().has_prompts):
            outcomes += self._prefill()
        else:
            outcomes += self._decode()
        return outcomes

    def remove(self, key: int) -> list[RunnerEvent]:
        streams = self._requests[key]
        self._drop(key)
        return [outcome for stream in streams for outcome in stream.finish(None)]

    def tokenize(self, request: Tokenize, prepared: Preparation | None = None) -> tuple[list[int], str]:
        prompt = prepared.result() if isinstance(prepared, Prepared) else self._preparer.read_prompt(request)
        return prompt.tokens, prompt.text

    def memory(self) -> MemoryUsage:
        return memory_usage()

    def cache_stats(self) -> CacheStats | None:
        kept: CacheManager | None = getattr(self, "_cache_manager", None)  # the lane may be closed meanwhile
        return kept.stats() if kept is not None else None

    def clear_cache(self) -> int:
        freed = self._cache_manager.clear()
        mx.clear_cache()
        return freed

    def close(self) -> int:
        return measure_freed(self._let_go)

    def _let_go(self) -> None:
        self._reset()
        self._preparations.close()
        self._cache_manager.close()
        if self._media is not None:
            self._media.close()
        del (
            self._network,
            self._preparer,
            self._preparations,
            self._cache_manager,
            self._admission,
            self._pending,
            self._media,
        )

    def warm_up(self) -> None:
        """Does what the first request of a kind would otherwise wait for. No request is held."""
        self._preparer.warm_up()

    def enable_padding(self) -> None:
        """Lets prompts of different lengths be processed together, if the model gets that right. No request is held."""
        self._prompts_together = MAX_PREFILL_BATCH if supports_padding(self._network) else 1
        self._reset()

    # Requests that begin.

    def _begin_arrivals(self) -> list[RunnerEvent]:
        outcomes: list[RunnerEvent] = []
        for key, arrival in self._pending.take_ready():
            try:
                self._begin(arrival)
            except Exception as error:
                self._drop(key)
                outcomes.append(_failure(key, error))
        return outcomes

    def _begin(self, arrival: PendingRequest) -> None:
        streams, first = arrival.streams, arrival.streams[0]
        start = self._cache_manager.start(streams, arrival.read.result() if arrival.read else None)
        arrival.admitted.cached_tokens = first.prefix_tokens
        if self._media and first.media and first.prefix_tokens < first.media.end:
            beginning = first.prompt[: first.media.end if self._cache_manager.needs_snapshots else -1]
            self._unseen.append((first, self._media.prefill(first.media, beginning, start, first.prefix_tokens)))
            return
        if self._media and first.media and start:
            self._media.settle(first.media, first.prompt, start)
        self._enter_batch(streams, start)

    def _enter_batch(self, streams: list[Sequence], start: list[Any] | None) -> None:
        """Puts a request into the batch, with what is known of its prompt."""
        first = streams[0]
        shared = len(first.prompt) - first.prefix_tokens > 1  # the other choices wait for the first one's cache
        for stream in streams[:1] if shared else streams:
            cache = copy.deepcopy(start)
            borders = self._cache_manager.checkpoints(stream)
            self._enter(stream, self._batch().add(stream, stream.prompt, cache, first.prefix_tokens, borders))

    def _unsee(self, key: int) -> None:
        self._unseen = deque((stream, work) for stream, work in self._unseen if stream.key != key)

    # A step: a slice of the prompts in work, or a token for each running answer, in turns.

    def _prefill(self) -> list[RunnerEvent]:
        self._prefills_next = False
        generator = self._batch()
        running = generator.running
        waiting = self._unbegun(running)
        prompts = generator.admit_prompts(self._policy.max_batch_tokens(running, waiting))
        outcomes = self._see(prompts, running, waiting) if self._unseen else []
        if not prompts:
            return outcomes
        at = self._prefilled()
        size = self._policy.chunk_size(running, prompts, at, waiting, generator.longest_remaining)
        started = time.perf_counter()
        try:
            progress = generator.prefill(size)
        except Exception as error:
            return outcomes + self._break(error)
        seconds = time.perf_counter() - started
        longest = 0
        for prompt in progress:
            stream = self._by_uid[prompt.uid]
            before = stream.computed_tokens
            outcomes += self._advance_prompt(stream, prompt)
            longest = max(longest, stream.computed_tokens - before)
        if sliced := sum(not prompt.end_of_prompt for prompt in progress):
            self._policy.record_step(seconds + (self._decoded_s if running else 0.0), running, sliced, longest, at)
        return outcomes + self._end_overrun()

    def _decode(self) -> list[RunnerEvent]:
        generator = self._batch()
        outcomes: list[RunnerEvent] = []
        started = time.perf_counter()
        try:
            for prompt in generator.start_decoding():
                if stream := self._by_uid.get(prompt.uid):  # else its request has just ended with another choice
                    outcomes += self._advance_prompt(stream, prompt)
            if rows := generator.first_tokens():
                self._prefills_next = not generator.running  # else their next step comes first: it is not begun yet
                return outcomes + self._collect(rows) + self._end_overrun()
            running = generator.running
            rows = generator.decode()
        except Exception as error:
            return outcomes + self._break(error)
        self._restarted.clear()
        self._decoded_s = time.perf_counter() - started
        if self._prefills_next:  # after a slice it is short: what was started before was done meanwhile
            self._policy.record_step(self._decoded_s, running, 0, 0, 0)
        self._prefills_next = True
        return outcomes + self._collect(rows) + self._end_overrun()

    def _see(self, prompts: int, running: int, waiting: int) -> list[RunnerEvent]:
        """A piece of the work that is to be done for images, those of the oldest request first, beside that."""
        stream, work = self._unseen[0]
        size = self._policy.chunk_size(running, 1 + prompts, work.done, waiting)
        started = time.perf_counter()
        try:
            tokens = work.advance(size)
        except Exception as error:  # its cache is its own
            self._drop(stream.key)
            return [_failure(stream.key, error)]
        self._policy.record_step(time.perf_counter() - started, 0, 1, tokens, work.done - tokens)
        stream.computed_tokens = work.done
        if work.done == work.end:
            self._unseen.popleft()
            stream.prefix_tokens = work.done
            stream.keep(stream.prompt[: work.done], RowCache(work.cache, 0, work.done))
            self._enter_batch(self._requests[stream.key], work.cache)
        return [PrefillProgress(stream.key, work.done, len(stream.prompt))]

    def _prefilled(self) -> int:
        """How far the longest prompt has come that is not done."""
        prompts = (stream for stream in self._by_uid.values() if stream.computed_tokens < len(stream.prompt))
        return max((stream.computed_tokens for stream in prompts), default=0)

    def _unbegun(self, running: int) -> int:
        """Prompts that are not done, of the rows that do not run."""
        return len(self._by_uid) - running + len(self._unseen)

    def _collect(self, rows: list[Sequence]) -> list[RunnerEvent]:
        outcomes: list[RunnerEvent] = []
        for row in rows:
            if row.key not in self._requests:
                continue  # another choice of the request has just failed
            new = row.take_events()
            outcomes += new
            if row.ended:
                self._forget(row)
                if isinstance(new[-1], Failed):
                    self._drop(row.key)
        return outcomes

    def _advance_prompt(self, stream: Sequence, prompt: PromptProgress) -> list[RunnerEvent]:
        """A prompt came further: up to its last token, from where the choices go their own ways, or to its end."""
        done, total = (count + stream.prefix_tokens for count in prompt.progress)
        stream.computed_tokens = done
        outcomes: list[RunnerEvent] = [PrefillProgress(stream.key, done, total)] if total == len(stream.prompt) else []
        if prompt.end_of_prompt and stream.is_prefill_only:
            choices = self._requests[stream.key]
            self._drop(stream.key)
            outcomes += [TokenDelta(choice.key, finish_reason="length", choice=choice.choice) for choice in choices]
        elif done == total - 1 and not stream.is_prefill_only and (waiting := self._waiting(stream.key)):
            assert stream.uid is not None
            self._join(waiting, self._batch().cache_of(stream.uid))
        return outcomes

    def _waiting(self, key: int) -> list[Sequence]:
        """The choices that wait for the first one's prompt."""
        return [stream for stream in self._requests[key] if stream.uid is None and stream not in self._broken]

    def _join(self, streams: list[Sequence], cache: list[Any]) -> None:
        for stream in streams:
            self._enter(stream, self._batch().add_prefilled(stream, stream.tokens, copy.deepcopy(cache)))

    def _enter(self, stream: Sequence, uid: int) -> None:
        stream.uid = uid
        self._by_uid[uid] = stream

    def _forget(self, stream: Sequence) -> None:
        """A stream that has left the batch by itself."""
        assert stream.uid is not None
        del self._by_uid[stream.uid]
        self._requests[stream.key].remove(stream)
        if not self._requests[stream.key]:
            del self._requests[stream.key]

    def _drop(self, key: int) -> None:
        """Takes what is left of a request out of the batch."""
        self._pending.discard(key)
        self._unsee(key)
        for stream in self._requests.pop(key, ()):
            if stream in self._broken:
                self._broken.remove(stream)
            elif stream.uid is not None:
                self._batch().drop(stream.uid)
                del self._by_uid[stream.uid]

    # Memory.

    def _lengths(self) -> list[int]:
        """The tokens of each row, those included that are not processed yet."""
        return [stream.length for streams in self._requests.values() for stream in streams]

    def _shown(self) -> "set[Picture]":
        """What the requests held are shown."""
        return {picture for streams in self._requests.values() for picture in _shown(streams[0])}

    def _end_overrun(self) -> list[RunnerEvent]:
        """Ends requests until there is memory for the next token of the others."""
        outcomes: list[RunnerEvent] = []
        while self._requests and self._admission.is_over_budget():
            streams = self._requests[self._longest()]
            for stream in streams:
                self._cache_manager.forget(stream)  # to keep it would take memory
            self._drop(streams[0].key)
            outcomes += [outcome for stream in streams for outcome in stream.finish("capacity")]
        return outcomes

    def _longest(self) -> int:
        """The request with the longest row. Others are padded to it, so its end frees the most."""
        return max(self._requests, key=lambda key: max(stream.length for stream in self._requests[key]))

    # The batch.

    def _batch(self) -> LengthBucketedBatch | SpeculativeBatch:
        if self._generator is None:
            network, ends, structural = self._network, self._preparer.eos_token_ids, self._preparer.xtc_special_tokens
            if isinstance(network, TargetDraftPair):
                self._generator = SpeculativeBatch(network, ends, structural)
            else:
                self._generator = LengthBucketedBatch(
                    network,
                    self.max_batch_size,
                    self._prompts_together,
                    ends,
                    structural,
                    positions=self.model.context_len,
                    padding=self._padding,
                )
        return self._generator

    def _reset(self) -> None:
        """Drops the batch, with whatever is in it; the next request starts a new one."""
        self._by_uid.clear()
        if self._generator is not None:
            self._generator.close()
            self._generator = None

    def _break(self, error: Exception) -> list[RunnerEvent]:
        """After an exception in the middle of a step no row's cache can be trusted, and one row may be the cause.

        So all start again from their tokens, one by one: those at fault fail then, and the others do not notice. When
        the rows fail together that were well alone, they all fail, or the longest where it is memory that they lack.
        """
        for stream in self._by_uid.values():
            self._cache_manager.forget(stream)
        outcomes = self._collect(list(self._by_uid.values()))  # of rows whose turn was before the failure
        streams = list(self._by_uid.values())
        self._reset()
        if not self._restarted.issuperset(streams):
            self._restarted.update(streams)
            self._broken.extend(streams)
            if is_out_of_memory(error):
                self._cache_manager.evict(self._cache_manager.bytes)
        elif streams:
            longest = max(streams, key=lambda stream: stream.length)
            failed = dict.fromkeys(stream.key for stream in ([longest] if is_out_of_memory(error) else streams))
            for key in failed:
                del self._requests[key]
                outcomes.append(_failure(key, error))
            self._broken.extend(stream for stream in streams if stream.key not in failed)
        return outcomes

    def _restart(self, stream: Sequence) -> list[RunnerEvent]:
        stream.restart()
        try:
            cache, held = None, 0
            if self._media and stream.media:
                cache, held = self._media.refill(stream.media, stream.prompt[:-1]), len(stream.prompt) - 1
            cache = prefill(self._network, stream.tokens, cache, held)
        except Exception as error:
            self._drop(stream.key)
            return [_failure(stream.key, error)]
        self._join(self._waiting(stream.key), cache)
        return []


def _shown(stream: Sequence) -> "set[Picture]":
    return {place.picture for place in stream.media.places} if stream.media else set()


def _failure(key: int, error: Exception) -> Failed:
    code = "out_of_memory" if is_out_of_memory(error) else "engine_error"
    return Failed(key, RequestError(code, f"the model failed: {type(error).__name__}: {error}"))
