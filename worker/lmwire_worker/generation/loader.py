"""Opens text lanes. Imports no model library before the first."""

import weakref
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmwire_protocol import Load, RequestError

from ..engine.interface import ModelRunner, Report
from ..media import Policy
from .disk_cache_options import DiskCacheOptions

if TYPE_CHECKING:
    from ..multimodal.loader import Eyes


class TextModelLoader:
    """Models that answer in text, whether they see or not, one after the other.

    Args:
        memory_limit: Bytes that a model, its caches and its requests may take together; None for what the device has.
        disk: What is kept on disk of prompts and answers; None for nothing.
        media: What may be read of images and sounds.
    """

    def __init__(self, memory_limit: int | None, disk: DiskCacheOptions | None, media: Policy) -> None:
        self._memory_limit = memory_limit
        self._disk = disk
        self._media = media
        self._base: Callable[[], Any] = lambda: None
        """The `Base` that was read last, or None: it goes with the last lane on it."""
        self.finish: Callable[[], None] = lambda: None
        """Lets what the last lane keeps on disk be written, as `Engine.finish` does."""

    def open(
        self,
        request: Load,
        folder: Path,
        config: dict[str, Any],
        eyes: "Eyes | None",
        report: Report,
        give_up: Callable[[], None],
    ) -> ModelRunner:
        """Opens the model in a folder that was checked; see `Engine.open`.

        Args:
            request: How.
            folder: The model's.
            config: Its config.json.
            eyes: What opens the part of it that sees; None where there is none.
            report: Told of the steps.
            give_up: Closes the present lane.
        """
        from ..models import memory_budget
        from ..models.adapters import attach_adapter, find_adapter
        from ..models.weights import read_weights
        from .admission import MemoryBudget, check_load
        from .draft_model import open_draft_model
        from .kv_cache_options import limit_context, quantize_cache
        from .language_model import check_architecture, describe, load_tokenizer, open_shared_weights
        from .prefix_cache import open_disk_tier
        from .prefix_cache.fingerprint import fingerprint
        from .runner import GenerationRunner
        from .warm_up import warm_up

        if not eyes:
            check_architecture(config)
        adapter = find_adapter(request.adapter_path) if request.adapter_path else None
        tokenizer = load_tokenizer(folder, config, trust_remote_code=request.trust_remote_code)
        draft = open_draft_model(request, report)
        held = self._held(folder)
        open_model = eyes.open_base if eyes else open_shared_weights
        base = held or open_model(folder, trust_remote_code=request.trust_remote_code)
        network: Any = base.new_network()
        if eyes:
            eyes.open_processor(network, tokenizer)
        if adapter:
            attach_adapter(network.model if eyes else network, adapter)
        if request.kv_bits:
            quantize_cache(network, request.kv_bits)
        model = limit_context(describe(folder, base.config, network, tokenizer, adapter), request.context_len)
        if draft:
            network = draft.pair_with(network, tokenizer, model.vocab_size)
            model = replace(model, weights_bytes=model.weights_bytes + draft.model.weights_bytes)
        limit = self._memory_limit or memory_budget.default_budget()
        cost = _row_cost(network, folder)
        if not request.force:
            check_load(model, cost, limit, memory_budget.free_bytes())
        give_up()
        read_weights(network, folder, report, held.modules() if held else None)
        self._base = weakref.ref(base)
        folders = [path for path in (folder, adapter, draft and Path(draft.model.path)) if path]
        disk = open_disk_tier(self._disk, fingerprint(network, request, folders)) if self._disk else None
        if disk:
            self.finish = disk.flush
        room = MemoryBudget.measure(model, cost, limit)
        memory_budget.limit_mlx_memory(room.total_bytes)
        sight = eyes.open(network, self._media, report) if eyes else None
        if sight:
            model = replace(model, capabilities=[*model.capabilities, *sight.capabilities])
        lane = GenerationRunner(network, tokenizer, model, room, disk, sight)
        if eyes and not eyes.batches:
            lane.max_batch_size = 1
        warm_up(lane, report)
        return lane

    def _held(self, folder: Path) -> Any:
        """The folder's `Base` if it is in memory."""
        base = self._base()
        return base if base and base.matches(folder) else None


def _row_cost(network: Any, folder: Path) -> Any:
    from ..models.weights import summarize_exception
    from .admission import RowCost

    try:
        return RowCost.measure(network)
    except Exception as error:  # the architecture's own code runs here for the first time
        raise RequestError(
            "bad_model", f"{folder} loads, but fails on a first prompt: {summarize_exception(error)}"
        ) from None
