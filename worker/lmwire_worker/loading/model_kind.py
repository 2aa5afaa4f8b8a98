"""Detection of a model folder's kind. Imports no model library."""

from pathlib import Path
from typing import Any, Literal

from lmwire_protocol import RequestError

from ..embeddings.recipe import is_embedding_model
from ..models.config_check import check_config
from ..models.folder_check import check_folder, check_weights
from ..models.model_files import CONFIG, bad_model, check_entries, read_json
from ..models.settings_check import check_settings
from ..multimodal.detect import takes_images
from ..synthesis.detect import is_synthesis_model
from ..transcription.detect import is_speech_model

Kind = Literal["text", "vision", "speech", "synthesis", "embeddings"]


def detect_kind(folder: Path, *, trust_remote_code: bool) -> tuple[Kind, dict[str, Any]]:
    """Check a folder's files, and return the kind of its model and its config.json.

    Args:
        folder: The model folder.
        trust_remote_code: Allow code from the folder.

    Raises:
        RequestError: bad_model, unsupported.
    """
    try:
        return _kind_of(folder, trust_remote_code=trust_remote_code)
    except RequestError:
        raise
    except (TypeError, ValueError, AttributeError, KeyError, OSError) as error:  # fields of types that none expects
        raise bad_model(
            folder, f"has files that do not make sense: {type(error).__name__}: {str(error)[:300]}"
        ) from None


def _kind_of(folder: Path, *, trust_remote_code: bool) -> tuple[Kind, dict[str, Any]]:
    config = read_json(folder / CONFIG)
    speaks = is_synthesis_model(config)
    if speaks or is_speech_model(config):
        check_settings(folder, config)
        check_entries(folder)  # the other files of such models have names of their own
        if not any(folder.glob("*.safetensors")):
            raise bad_model(folder, "has no weights: no file *.safetensors")
        check_config(folder / CONFIG, config, check_weights(folder))
        return "synthesis" if speaks else "speech", config
    config = check_folder(folder, trust_remote_code=trust_remote_code)
    if is_embedding_model(folder, config):
        return "embeddings", config
    return "vision" if takes_images(folder, config) else "text", config
