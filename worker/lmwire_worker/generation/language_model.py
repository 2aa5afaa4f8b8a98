"""Load a model folder with mlx-lm."""

from pathlib import Path
from typing import Any

from mlx_lm import utils

from lmwire_protocol import RequestError

from ..models.shared_weights import SharedWeights, list_files
from ..models.weights import summarize_exception


def check_architecture(config: dict[str, Any]) -> None:
    """Check that mlx-lm knows a model's architecture. Reads no weights.

    Raises:
        RequestError: unsupported.
    """
    if config.get("model_file") is not None:
        return
    try:
        utils._get_classes(config=config)
    except (ValueError, AttributeError, TypeError):  # some modules of the package are not models
        problem = f"this worker's mlx-lm has no architecture `{config['model_type']}`; a newer mlx-lm may have it"
        raise RequestError("unsupported", problem) from None


def open_shared_weights(folder: Path, *, trust_remote_code: bool) -> SharedWeights:
    """Return a model whose weights are not read yet.

    Args:
        folder: The model folder.
        trust_remote_code: Whether the folder's Python files may run.

    Raises:
        RequestError: bad_model.
    """
    files = list_files(folder)
    try:
        network, config = utils.load_model(folder, lazy=True, trust_remote_code=trust_remote_code)
    except BaseException as error:  # mlx-lm's models raise whatever a wrong config leads to
        raise RequestError("bad_model", f"{folder} does not load: {summarize_exception(error)}") from None
    return SharedWeights(folder, files, network, config)
