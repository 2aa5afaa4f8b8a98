"""An embedding model's folder into a lane."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from mlx_lm.tokenizer_utils import TokenizerWrapper

from lmwire_protocol import Load, RequestError

from ..engine.interface import Report
from ..engine.load_context import LoadContext
from ..generation.kv_cache_options import limit_context
from ..generation.language_model import describe, load_tokenizer
from ..media import Reader
from ..models import memory_budget
from ..models.weights import read_weights, summarize_exception
from ..multimodal.vision_model import trial_image
from .inputs import TextInputs
from .network import EmbeddingNetwork, Input
from .qwen3_vl import SeeingNetwork, SeenInputs
from .recipe import Recipe, sees
from .runner import EmbeddingRunner

TRIAL: Final = (Input([1] * 3), Input([1] * 5))
"""Together they take padding."""
SAME: Final = 0.99
"""How near the direction of a vector is to that of the same input's alone, at least, whatever is rounded."""


def open_embeddings(context: LoadContext) -> EmbeddingRunner:
    """Load a model for which `is_embedding_model` is true; see `lmwire_worker.engine.interface.ModelLoader.open`."""
    request, folder, config, report = context.request, context.folder, context.config, context.report
    _refuse_settings(request)
    recipe = Recipe.of(folder)
    tokenizer = load_tokenizer(folder, config, trust_remote_code=request.trust_remote_code)
    network, inputs, trial = _open(folder, config, recipe, tokenizer, trust_remote_code=request.trust_remote_code)
    longest = min(filter(None, (recipe.longest, network.longest, tokenizer.model_max_length)))
    model = describe(folder, config, network.module, tokenizer)
    able = ["embed", "tokenize", *(["images"] if isinstance(inputs, SeenInputs) else [])]
    model = replace(model, context_len=longest, capabilities=able)
    model = limit_context(model, request.context_len)
    limit = context.memory_limit or memory_budget.default_budget()
    if not request.force:
        memory_budget.check_fits(model, 0, limit, memory_budget.free_bytes())
    context.release_current_model()
    read_weights(network.module, folder, report)
    memory_budget.limit_mlx_memory(limit)
    width = _try(network, trial, folder, report)
    return EmbeddingRunner(
        network, inputs, model, width, max(limit - model.weights_bytes, 0), Reader(context.media_policy)
    )


def _open(
    folder: Path, config: dict[str, Any], recipe: Recipe, tokenizer: TokenizerWrapper, *, trust_remote_code: bool
) -> tuple[EmbeddingNetwork, TextInputs, Sequence[Input]]:
    """A model without weights, what reads its inputs, and some to try it with.

    Raises:
        RequestError: bad_model, unsupported.
    """
    if not sees(config):
        network = EmbeddingNetwork(folder, recipe)
        return network, TextInputs(tokenizer, recipe, network.vocab_size), TRIAL
    network = SeeingNetwork(folder, recipe, trust_remote_code=trust_remote_code)
    inputs = SeenInputs(tokenizer, recipe, network)
    images = [trial_image(), trial_image(1, 64, 96)]
    return network, inputs, [*TRIAL, *(Input(inputs.image_tokens(image), image.pixels) for image in images)]


def _refuse_settings(request: Load) -> None:
    for field in ("adapter_path", "draft_path", "kv_bits"):
        if getattr(request, field) is not None:
            raise RequestError("unsupported", f"{field}: a model that makes vectors has no use for it", field=field)


def _try(network: EmbeddingNetwork, trial: Sequence[Input], folder: Path, report: Report) -> int:
    """Runs trial inputs, so that everything is compiled, and returns the numbers of a vector.

    Whether they may run together the network is told.
    """
    steps = [trial, *([row] for row in trial)]
    vectors: list[Sequence[float]] = []
    for done, rows in enumerate(steps):
        report("warm_up", done, len(steps), "steps")
        try:
            vectors += network.embed(rows, normalize=[False] * len(rows))
        except NotImplementedError as error:
            raise RequestError("unsupported", f"{folder}: {error}") from None
        except Exception as error:
            problem = f"{folder} loads, but fails on a first input: {summarize_exception(error)}"
            raise RequestError("bad_model", problem) from None
    report("warm_up", len(steps), len(steps), "steps")
    together, alone = np.array(vectors[: len(trial)]), np.array(vectors[len(trial) :])
    lengths = np.linalg.norm(together, axis=1) * np.linalg.norm(alone, axis=1)
    network.batches = bool(((together * alone).sum(axis=1) >= SAME * lengths).all())
    return len(vectors[0])
