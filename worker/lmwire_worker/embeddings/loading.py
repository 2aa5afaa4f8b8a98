"""An embedding model's folder into a lane."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from lmwire_protocol import Load, RequestError

from ..lane import Report
from ..text import memory
from ..text.admission import RowCost, check_load
from ..text.kv_settings import limit_context
from ..text.loading import describe, load_tokenizer, read_weights, sentence
from .lane import EmbeddingLane
from .network import EmbeddingNetwork
from .recipe import Recipe

TRIALS: Final = ((3, 5), (4,))
"""Lengths of the inputs of the trial steps: together, which takes padding, and alone."""


def open_embeddings(
    request: Load,
    folder: Path,
    config: dict[str, Any],
    report: Report,
    replace_lane: Callable[[], None],
    memory_limit: int | None,
) -> EmbeddingLane:
    """Loads a model that `is_embedding_model` is true of; see `lmwire_worker.lane.Engine.open`.

    Args:
        request: What it is loaded with.
        folder: Where it is; its files have been checked.
        config: Its config.json.
        report: Hears of progress.
        replace_lane: Called when the present lane has to go.
        memory_limit: Bytes for everything; None for what the device has.
    """
    _refuse_settings(request)
    recipe = Recipe.of(folder)
    tokenizer = load_tokenizer(folder, config, trust_remote_code=request.trust_remote_code)
    network = EmbeddingNetwork(folder, recipe)
    longest = min(filter(None, (recipe.longest, network.longest, tokenizer.model_max_length)))
    model = describe(folder, config, network.module, tokenizer)
    model = replace(model, context_len=longest, capabilities=["embed", "tokenize"])
    model = limit_context(model, request.context_len)
    limit = memory_limit or memory.default_budget()
    if not request.force:
        check_load(model, RowCost(0, ()), limit, memory.free_bytes())
    replace_lane()
    read_weights(network.module, folder, report)
    memory.tell_mlx(limit)
    width = _try(network, folder, report)
    return EmbeddingLane(network, tokenizer, recipe, model, width, max(limit - model.weights_bytes, 0))


def _refuse_settings(request: Load) -> None:
    for field in ("adapter_path", "draft_path", "kv_bits"):
        if getattr(request, field) is not None:
            raise RequestError("unsupported", f"{field}: a model that makes vectors has no use for it", field=field)


def _try(network: EmbeddingNetwork, folder: Path, report: Report) -> int:
    """Runs trial inputs, so that everything is compiled, and returns the numbers of a vector."""
    width = 0
    for done, lengths in enumerate(TRIALS):
        report("warm_up", done, len(TRIALS), "steps")
        try:
            vectors = network.embed([[1] * length for length in lengths], normalize=[False] * len(lengths))
        except NotImplementedError as error:
            raise RequestError("unsupported", f"{folder}: {error}") from None
        except Exception as error:
            problem = f"{folder} loads, but fails on a first input: {sentence(error)}"
            raise RequestError("bad_model", problem) from None
        width = len(vectors[0])
    report("warm_up", len(TRIALS), len(TRIALS), "steps")
    return width
