"""Open an embedding model."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from msgspec.structs import replace

from lmwire_protocol import RequestError

from ..engine.interface import Report
from ..engine.load_context import LoadContext, refuse_settings
from ..media import MediaReader
from ..media.noise import noise_image
from ..models import device_memory
from ..models.model_info import describe_model, limit_context
from ..models.tokenizer import Tokenizer
from ..models.tokenizer_loading import load_tokenizer
from ..models.weights import read_weights, store_transposed, summarize_exception
from .inputs import InputTokenizer
from .network import EmbeddingInput, EmbeddingNetwork
from .qwen3_vl import VisionEmbeddingNetwork, VisionInputTokenizer
from .recipe import EmbeddingRecipe, takes_images
from .runner import EmbeddingRunner

WARM_UP_INPUTS: Final = (EmbeddingInput([1] * 3), EmbeddingInput([1] * 5))
"""Inputs of different lengths: a batch of them has padding."""
MIN_COSINE: Final = 0.99
"""Smallest cosine between an input's vectors in a batch and alone. Rounding stays well above it."""


def open_embedding_model(context: LoadContext) -> EmbeddingRunner:
    """Load an embedding model; see `lmwire_worker.engine.interface.ModelLoader.open`.

    Raises:
        RequestError: bad_model, unsupported, invalid_request, out_of_memory.
        LoadCancelled: From `report`.
    """
    request, folder, config, report = context.request, context.folder, context.config, context.report
    refuse_settings(request, "an embedding model")
    recipe = EmbeddingRecipe.read(folder)
    tokenizer = load_tokenizer(folder, config, trust_remote_code=request.trust_remote_code)
    network, inputs, trial = _open(folder, config, recipe, tokenizer, trust_remote_code=request.trust_remote_code)
    longest = min(filter(None, (recipe.max_tokens, network.max_tokens, tokenizer.model_max_length)))
    model = describe_model(folder, config, network.module, tokenizer)
    able = ["embed", "tokenize", *(["images"] if isinstance(inputs, VisionInputTokenizer) else [])]
    model = replace(model, context_len=longest, capabilities=able)
    model = limit_context(model, request.context_len)
    limit = context.memory_limit or device_memory.default_budget()
    if not request.force:
        device_memory.check_fits(model, 0, limit, device_memory.free_bytes())
    context.release_current_model()
    store_transposed(network.module)
    read_weights(network.module, folder, report)
    device_memory.limit_mlx_memory(limit)
    width = _try(network, trial, folder, report)
    return EmbeddingRunner(
        network, inputs, model, width, max(limit - model.weights_bytes, 0), MediaReader(context.media_policy)
    )


def _open(
    folder: Path,
    config: dict[str, Any],
    recipe: EmbeddingRecipe,
    tokenizer: Tokenizer,
    *,
    trust_remote_code: bool,
) -> tuple[EmbeddingNetwork, InputTokenizer, Sequence[EmbeddingInput]]:
    """Return a model without weights, its tokenizer, and inputs for a warm-up.

    Raises:
        RequestError: bad_model, unsupported.
    """
    if not takes_images(config):
        network = EmbeddingNetwork(folder, recipe)
        return network, InputTokenizer(tokenizer, recipe, network.vocab_size), WARM_UP_INPUTS
    network = VisionEmbeddingNetwork(folder, recipe, trust_remote_code=trust_remote_code)
    inputs = VisionInputTokenizer(tokenizer, recipe, network)
    images = [noise_image(), noise_image(1, 64, 96)]
    return (
        network,
        inputs,
        [*WARM_UP_INPUTS, *(EmbeddingInput(inputs.image_tokens(image), image.pixels) for image in images)],
    )


def _try(network: EmbeddingNetwork, trial: Sequence[EmbeddingInput], folder: Path, report: Report) -> int:
    """Run the warm-up inputs, which compiles all kernels. Return the length of a vector.

    The network batches inputs only if their vectors are the same in a batch and alone.
    """
    steps = [trial, *([row] for row in trial)]
    vectors: list[Sequence[float]] = []
    for done, rows in enumerate(steps):
        report("warm_up", done, len(steps), "steps")
        try:
            vectors += network.embed(rows, normalize=[False] * len(rows))
        except NotImplementedError as error:
            raise RequestError("unsupported", f"{folder}: {error}") from None
        except BaseException as error:
            problem = f"{folder} loads, but fails on a first input: {summarize_exception(error)}"
            raise RequestError("bad_model", problem) from None
    report("warm_up", len(steps), len(steps), "steps")
    together, alone = np.array(vectors[: len(trial)]), np.array(vectors[len(trial) :])
    lengths = np.linalg.norm(together, axis=1) * np.linalg.norm(alone, axis=1)
    network.supports_batching = bool(((together * alone).sum(axis=1) >= MIN_COSINE * lengths).all())
    return len(vectors[0])
