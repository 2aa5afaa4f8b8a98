"""What kind of model a folder holds. Imports no model library."""

from pathlib import Path
from typing import Any, Literal

from .checks import check_folder, read_json
from .embeddings.recipe import is_embedding_model
from .speech.recognize import check_weights, is_speech_model
from .vision.recognize import sees

Kind = Literal["text", "vision", "speech", "embeddings"]


def kind_of(folder: Path, *, trust_remote_code: bool) -> tuple[Kind, dict[str, Any]]:
    """Checks a folder's files, and says of which kind its model is, with its config.json.

    Raises:
        RequestError: bad_model, unsupported.
    """
    config = read_json(folder / "config.json")
    if is_speech_model(config):
        check_weights(folder)  # its other files have other names than those of the rest
        return "speech", config
    config = check_folder(folder, trust_remote_code=trust_remote_code)
    if is_embedding_model(folder, config):
        return "embeddings", config
    return "vision" if sees(folder, config) else "text", config
