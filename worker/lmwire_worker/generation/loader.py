"""Load language models, with or without media, one after the other."""

import contextlib
import weakref
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import mlx.core as mx
from mlx import nn
from mlx_lm.models.cache import make_prompt_cache
from msgspec import Struct, json
from msgspec.structs import replace

from lmwire_protocol import Generate, Load, RequestError

from ..engine.interface import Failed, InsufficientMemory, ModelInfo, ModelRunner, Report, TokenDelta
from ..engine.load_context import DiskCacheOptions, LoadContext
from ..models import device_memory
from ..models.adapters import attach_adapter, find_adapter
from ..models.folder_check import check_folder
from ..models.fused_projections import fuse_projections, fusing_is_faster
from ..models.model_info import describe_model, limit_context, read_sampling_defaults
from ..models.resolve import find_folder
from ..models.tokenizer import Tokenizer
from ..models.tokenizer_loading import load_tokenizer
from ..models.weights import SharedWeights, read_weights, store_transposed, summarize_exception
from ..output_parsing import Syntax
from ..prompts.infill import find_infill_format
from ..prompts.model_syntax import find_syntax, named_tool_format, tool_format_note
from ..prompts.model_templates import choose_template
from ..prompts.reasoning import find_efforts
from .admission import MemoryBudget, RowCost, short_answer_bytes
from .batching import TargetDraftPair
from .caches import name_special_caches, quantize_cache
from .language_model import check_architecture, open_shared_weights
from .runner import GenerationRunner

if TYPE_CHECKING:
    from ..multimodal.loader import MultimodalLoader
    from ..ranks import Ranks
    from .prefix_cache.disk_tier import DiskTier

PROMPT_LENGTHS: Final = (3, 11, 6)
"""Tokens of the trial prompts. They differ, so that a common prefill needs padding."""
ANSWER_TOKENS: Final = 4
PROMPT_LOOKUP: Final = "builtin:ngram"
"""The `draft_path` of proposals from the text itself, without a draft model."""


class TextModelLoader:
    """Loads models that generate text.

    Args:
        disk: The prefix cache on disk; None if nothing is written to disk.
        ranks: The processes that hold each model together; None if this one does.
    """

    def __init__(self, disk: DiskCacheOptions | None, ranks: "Ranks | None" = None) -> None:
        self._ranks = ranks
        self._disk_options = disk
        self._disk: DiskTier | None = None
        """The disk tier of the last model, which may still write."""
        self._last_weights: Callable[[], SharedWeights | None] = lambda: None
        """A weak reference to the weights of the last model. They live as long as its runner."""

    def open(self, context: LoadContext, media_loader: "MultimodalLoader | None") -> ModelRunner:
        """Load the model of a folder; see `ModelLoader.open`.

        Args:
            context: The load.
            media_loader: Loads the media part; None for a model without.
        """
        request, folder, report = context.request, context.folder, context.report
        if not media_loader:
            check_architecture(context.config)
        adapter = find_adapter(request.adapter_path) if request.adapter_path else None
        tokenizer = load_tokenizer(folder, context.config, trust_remote_code=request.trust_remote_code)
        template_name = choose_template(tokenizer, request.chat_template_name, context.template_dir)
        search = _start_search(tokenizer, context)
        draft = open_draft_model(request, report)
        loaded = self._loaded_weights(folder, request.dtype)
        open_weights = media_loader.open_base if media_loader else open_shared_weights
        weights = loaded or open_weights(folder, trust_remote_code=request.trust_remote_code)
        if not loaded:
            weights.cast(request.dtype)
            if fusing_is_faster() and not (media_loader or self._ranks):  # ranks split each layer
                fuse_projections(weights.modules())
            elif not self._ranks:
                store_transposed(weights.modules())
        network = _build_network(weights, request, adapter, tokenizer, media_loader, self._ranks)
        model = limit_context(describe_model(folder, weights.config, network, tokenizer, adapter), request.context_len)
        if self._ranks:
            model = replace(model, layers=self._ranks.layers)
        if request.generation_config:
            model = replace(model, sampling_defaults=read_sampling_defaults(folder))
        if draft:
            network, model = _add_draft(network, model, tokenizer, draft)
        looks_up = request.draft_path == PROMPT_LOOKUP
        if looks_up:
            _check_cache("model", network)
        neighbours = self._ranks.neighbours if self._ranks and not device_memory.has_own_memory() else 1
        limit = context.memory_limit or device_memory.default_budget() // neighbours
        cost = _measure_row_cost(network, folder)
        if not request.force:
            device_memory.check_fits(
                model, short_answer_bytes(model, cost), limit, device_memory.free_bytes() // neighbours
            )
        syntax, efforts = search.result()
        model = replace(model, chat_template_name=template_name, reasoning_efforts=efforts, **_describe_tools(syntax))
        if self._ranks:
            self._ranks.release(json.encode(cost), context.release_current_model)
            del weights  # it has the whole of each weight
            weights = None
        else:
            context.release_current_model()
            self._last_weights = weakref.ref(weights)
        read_weights(network, folder, report, loaded.modules() if loaded else None, singly=self._ranks is not None)
        if _may_compile_layers() and not (media_loader or self._ranks):
            from ..models.compiled_layers import compile_if_faster

            for part in (network.model, network.draft) if draft else (network,):
                compile_if_faster(part)
        folders = [path for path in (folder, adapter, draft and Path(draft.model.path)) if path]
        disk = self._open_disk(network, request, folders)
        budget = MemoryBudget.measure(model, cost, limit)
        if self._ranks:
            total, resident, largest = self._ranks.agree(budget.total_bytes, budget.resident_bytes, model.weights_bytes)
            budget = replace(budget, total_bytes=total, resident_bytes=resident, weights_bytes=largest)
        device_memory.limit_mlx_memory(budget.total_bytes, model.weights_bytes)
        media = media_loader.open(network, context.media_policy, report) if media_loader else None
        if media:
            model = replace(model, capabilities=[*model.capabilities, *media.capabilities])
        if find_infill_format(tokenizer, model.vocab_size):
            model = replace(model, capabilities=[*model.capabilities, "suffix"])
        batches = media_loader is None or media_loader.supports_batching
        runner = GenerationRunner(
            *(network, tokenizer, model, budget, disk, media),
            **{"batches": batches, "weights": weights, "syntax": syntax, "ranks": self._ranks},
            looks_up=looks_up,
        )
        served = self._ranks.serve(runner) if self._ranks else runner
        if not self._ranks or self._ranks.rank == 0:  # which warms up all others
            warm_up(served, report)
        return served

    def flush(self) -> None:
        """Wait until the caches are on disk; see `ModelLoader.flush`. Safe in any thread."""
        if self._disk:
            self._disk.flush()

    def _loaded_weights(self, folder: Path, dtype: str | None) -> SharedWeights | None:
        """Return the weights of a folder if they are in memory, in the type of the load."""
        weights = self._last_weights()
        return weights if weights and weights.matches(folder, dtype) else None

    def _open_disk(self, network: Any, request: Load, folders: list[Path]) -> "DiskTier | None":
        if self._disk_options is None:
            return None
        from .prefix_cache.disk_tier import fingerprint, open_disk_tier  # few workers have one

        disk = open_disk_tier(self._disk_options, fingerprint(network, request, folders))
        self._disk = disk or self._disk
        return disk


def _start_search(tokenizer: Tokenizer, context: LoadContext) -> "Future[tuple[Syntax, list[str] | None]]":
    """Start to find how the model writes its answers, and the efforts of reasoning that its template takes.

    It runs beside the work on the network, since most of it is in the sandbox.
    """
    if context.request.tool_format is not None:
        named_tool_format(context.request.tool_format)  # refuses a wrong name before any other work
    thread = ThreadPoolExecutor(1, "syntax")
    search = thread.submit(_search, tokenizer, context)
    thread.shutdown(wait=False)
    return search


def _search(tokenizer: Tokenizer, context: LoadContext) -> tuple[Syntax, list[str] | None]:
    start, end = context.request.reasoning_start, context.request.reasoning_end
    markers = (start, end) if start and end else None
    syntax = find_syntax(tokenizer, context.config["model_type"], markers, context.request.tool_format)
    return syntax, find_efforts(tokenizer, syntax)


def _describe_tools(syntax: Syntax) -> dict[str, Any]:
    """Return the fields of a model's description that name its format of tool calls."""
    if syntax.tools is None:
        return {}
    return {"tool_format": syntax.tools.name, "tool_format_note": tool_format_note(syntax)}


def _build_network(
    weights: SharedWeights,
    request: Load,
    adapter: Path | None,
    tokenizer: Tokenizer,
    media_loader: "MultimodalLoader | None",
    ranks: "Ranks | None",
) -> Any:
    """Return the network that runs, with its adapter. Its weights are not read yet."""
    if ranks:
        network: Any = weights.modules()
        ranks.split(network, weights.config)
        store_transposed(network)
        return network
    network: Any = weights.new_network()
    if media_loader:
        media_loader.open_processor(network, tokenizer)
    if adapter:
        attach_adapter(network.model if media_loader else network, adapter)
    if request.kv_bits:
        quantize_cache(network, request.kv_bits)
    return network


def _add_draft(network: Any, model: ModelInfo, tokenizer: Tokenizer, draft: "DraftModel") -> tuple[Any, ModelInfo]:
    """Return the network with its draft model, and their common description."""
    pair = draft.pair_with(network, tokenizer, model.vocab_size)
    return pair, replace(model, weights_bytes=model.weights_bytes + draft.model.weights_bytes)


def _may_compile_layers() -> bool:
    """Return whether layers are worth a trial here. On a CPU, MLX would run a C++ compiler for each kind of them."""
    return mx.default_device() == mx.gpu


def _measure_row_cost(network: Any, folder: Path) -> RowCost:
    try:
        return RowCost.measure(network)
    except BaseException as error:  # the architecture's own code runs here for the first time
        problem = f"{folder} loads, but fails on a first prompt: {summarize_exception(error)}"
        raise RequestError("bad_model", problem) from None


# Trial prompts, so that the kernels are compiled before the first request.


def warm_up(runner: ModelRunner, report: Report) -> None:
    """Run trial prompts alone and together.

    Args:
        runner: The runner of the model.
        report: Receives the progress.

    Raises:
        RequestError: bad_model, if the model fails on them.
        LoadCancelled: from `report`, between two steps.
    """
    lengths = [min(length, runner.model.context_len) for length in PROMPT_LENGTHS]
    prompts = [[(7 * length + index) % runner.model.vocab_size for index in range(length)] for length in lengths]
    requests = [Generate(prompt=prompt, max_tokens=ANSWER_TOKENS, cache="off") for prompt in prompts]
    first = Generate(prompts[0], max_tokens=2, temperature=1, top_p=0.9, repetition_penalty=1.1, cache="off")
    if mx.default_device() == mx.cpu:  # its few kernels serve texts of all lengths, and stay on disk once compiled
        requests, first = [], Generate(prompts[0], max_tokens=1, cache="off")
    trial = _TrialRun(runner, report, total=2 * len(requests) * ANSWER_TOKENS + (first.max_tokens or 0))
    trial.run([first])
    for request in requests:
        trial.run([request])
    if runner.max_batch_size > 1:
        trial.run(requests)
    report("warm_up", trial.total, trial.total, "steps")


class _TrialRun:
    def __init__(self, runner: ModelRunner, report: Report, total: int) -> None:
        self._runner = runner
        self._report = report
        self.total = total
        self._done = 0

    def run(self, requests: list[Generate]) -> None:
        """Run requests together to their ends. Requests that do not fit into memory are left out."""
        running = 0
        with contextlib.suppress(InsufficientMemory):
            for key, request in enumerate(requests):
                self._runner.add(key, request, seed=0)
                running += 1
        while running:
            self._report("warm_up", self._done, self.total, "steps")
            for outcome in self._runner.step():
                if isinstance(outcome, Failed):
                    problem = f"{self._runner.model.path} loads, but fails on a first prompt: {outcome.error.message}"
                    raise RequestError("bad_model", problem)
                if isinstance(outcome, TokenDelta):
                    self._done += outcome.generated
                    running -= outcome.finish_reason is not None


# A draft model, paired with its target model.


class DraftModel(Struct, frozen=True):
    """A model that proposes tokens for another one. Its weights are not read yet."""

    network: Any
    tokenizer: Tokenizer
    model: ModelInfo

    def pair_with(self, network: nn.Module, tokenizer: Tokenizer, vocab_size: int) -> TargetDraftPair:
        """Return the target model and this draft model as one network.

        Args:
            network: The target model.
            tokenizer: Its tokenizer.
            vocab_size: Number of its tokens.

        Raises:
            RequestError: unsupported, if the draft would change answers.
        """
        _check_cache("model", network)
        _check_cache("draft model", self.network)
        if self.tokenizer.get_vocab() != tokenizer.get_vocab():
            raise _refusal(f"{self.model.path} cannot draft for this model: their tokenizers have different tokens")
        return TargetDraftPair(network, self.network, min(vocab_size, self.model.vocab_size))


def open_draft_model(request: Load, report: Report) -> DraftModel | None:
    """Return the draft model of a load; None if the load has none, or drafts from the text itself.

    Args:
        request: The load.
        report: Receives the progress of a download.

    Raises:
        RequestError: model_not_found, bad_model, unsupported.
        LoadCancelled: from `report`.
    """
    if request.draft_path is None:
        return None
    if request.kv_bits is not None:
        raise _refusal("a draft needs caches from which tokens can be taken out again, and kv_bits are not for those")
    if request.draft_path == PROMPT_LOOKUP:
        return None
    try:
        folder = find_folder(request.draft_path, report, trust_remote_code=request.trust_remote_code)
        return _open(folder, request.dtype, trust_remote_code=request.trust_remote_code)
    except RequestError as error:
        error.field = "draft_path"
        raise


def _open(folder: Path, dtype: str | None, *, trust_remote_code: bool) -> DraftModel:
    config = check_folder(folder, trust_remote_code=trust_remote_code)
    check_architecture(config)
    tokenizer = load_tokenizer(folder, config, trust_remote_code=trust_remote_code)
    base = open_shared_weights(folder, trust_remote_code=trust_remote_code)
    base.cast(dtype)
    store_transposed(base.modules())
    network = base.new_network()
    return DraftModel(network, tokenizer, describe_model(folder, base.config, network, tokenizer))


def _check_cache(name: str, network: nn.Module) -> None:
    if kinds := name_special_caches(make_prompt_cache(network)):
        problem = f"the {name} keeps a {kinds}, and refused tokens can only be taken out of a plain KV cache"
        raise _refusal(problem)


def _refusal(problem: str) -> RequestError:
    return RequestError("unsupported", f"draft_path: {problem}", field="draft_path")
