"""Run requests on a language model, all together in one batch.

A request passes six stages: prepare (in threads), admit, prefill, decode, parse (`Sequence.append_token`), deliver.
From `add` to its end, it is in one table. `Stepper` makes the steps.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import mlx.core as mx
from mlx import nn

from lmwire_protocol import Chat, Generate, Tokenize
from lmwire_protocol.events import CacheStats

from ..engine.interface import (
    AdmittedRequest,
    InferenceCommand,
    MemoryUsage,
    ModelInfo,
    Preparation,
    RunnerEvent,
)
from ..engine.preparation import Prepared
from ..models.device_memory import measure_freed, memory_usage, release_unused_memory
from ..models.tokenizer import Tokenizer
from ..output_parsing import Syntax
from .admission import Admission, MemoryBudget
from .batching import Batch, SpeculativeBatch, TargetDraftPair, supports_batching, supports_padding
from .cache_manager import CacheManager
from .media_backend import MediaBackend
from .prefill_policy import PrefillPolicy
from .preparation import RequestPreparer
from .request_table import ActiveRequest, RequestTable
from .stepper import Stepper

if TYPE_CHECKING:
    from .prefix_cache.disk_tier import DiskTier

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
        disk: "DiskTier | None" = None,
        media: MediaBackend | None = None,
        *,
        batches: bool = True,
        weights: object = None,
        syntax: Syntax | None = None,
    ) -> None:
        self.model = model
        can_batch = batches and supports_batching(network) and not isinstance(network, TargetDraftPair)
        self.max_batch_size = MAX_BATCH_SIZE if can_batch else 1
        self._supports_padding: bool | None = None if can_batch else False
        """True if prompts of different lengths may be prefilled together; None until two of them wait."""
        self._network = network
        self._weights = weights
        self._media = media
        self._preparer = RequestPreparer(tokenizer, model, budget.total_bytes, media, syntax)
        self.table = RequestTable()
        self._cache_manager = CacheManager(
            network,
            budget,
            self._preparer.eos_token_ids,
            disk,
            media.feature_cache if media else None,
            lambda: self.table.media_inputs,
        )
        self._admission = Admission(budget, self._cache_manager)
        self._max_padding_tokens = budget.max_padding_tokens
        self._policy = PrefillPolicy()
        self.stepper = Stepper(
            network,
            model,
            self.table,
            self._cache_manager,
            self._admission,
            self._policy,
            self._new_batch,
            media,
            self._preparer.format_logprob,
        )

    # Prepare.

    @property
    def batch_wait_s(self) -> float:
        """See `ModelRunner.batch_wait_s`."""
        return self._policy.batch_wait_s if len(self.table) < self._max_prefill_batch else 0.0

    @property
    def _max_prefill_batch(self) -> int:
        return 1 if self._supports_padding is False else MAX_PREFILL_BATCH

    def prepare(
        self, request: InferenceCommand | Tokenize, ready: Callable[[], None], size: int = 0
    ) -> Preparation | None:
        """See `ModelRunner.prepare`."""
        is_served = isinstance(request, Generate | Chat | Tokenize)
        return self._preparer.start(request, ready, size) if is_served else None

    def tokenize(self, request: Tokenize, prepared: Preparation | None = None) -> tuple[list[int], str]:
        """See `ModelRunner.tokenize`."""
        prompt = prepared.result() if isinstance(prepared, Prepared) else self._preparer.read_prompt(request)
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
        ready = prepared.result() if isinstance(prepared, Prepared) else self._preparer.prepare(request)
        sequences = self._preparer.build_sequences(key, request, seed, ready, plain_text=plain_text)
        first = sequences[0]
        self._cache_manager.check_pin(first)
        media_bytes = sum(media.nbytes for media in first.media_inputs)
        self._admission.check(self.table.lengths, len(first.prompt), request.max_tokens, request.n, media_bytes)
        admitted = AdmittedRequest(len(first.prompt))
        self.table.add(key, ActiveRequest(admitted, sequences, self._cache_manager.start_reading(first)))
        return admitted

    # Step.

    def step(self) -> list[RunnerEvent]:
        """See `ModelRunner.step`."""
        return self.stepper.step()

    def remove(self, key: int) -> list[RunnerEvent]:
        """See `ModelRunner.remove`."""
        return [event for sequence in self.stepper.drop(key) for event in sequence.finish(None)]

    # Memory.

    def memory(self) -> MemoryUsage:
        """See `ModelRunner.memory`."""
        return memory_usage()

    def cache_stats(self) -> CacheStats | None:
        """See `ModelRunner.cache_stats`."""
        return self._cache_manager.stats()

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
        self.stepper.discard_batch()
        self._preparer.close()
        self._cache_manager.close()
        if self._media is not None:
            self._media.close()
        del self._network, self._weights, self._preparer, self._admission
        del self.stepper, self.table, self._media

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
            may_pad=self._may_pad,
        )

    def _may_pad(self) -> bool:
        """Return whether the model computes padded prompts correctly.

        The first call finds out, which takes as long as eight short prompts. It comes right before the first prompts
        that are computed together, so a process that answers one question never makes it.
        """
        if self._supports_padding is None:
            try:
                self._supports_padding = supports_padding(self._network)
            except Exception:  # the architecture's own code: whatever it raises, it computes one prompt at a time
                self._supports_padding = False
        return self._supports_padding
