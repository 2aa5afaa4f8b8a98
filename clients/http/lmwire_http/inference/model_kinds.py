"""Check that a loaded model has the capability that an endpoint needs."""

from typing import Final

from ..errors import ApiError
from ..pool import Lease

_ADVICE: Final = {
    "embed": "makes no embeddings; load an embedding model, such as mlx-community/Qwen3-Embedding-0.6B-4bit-DWQ",
    "transcribe": "transcribes no speech; load a speech model, such as mlx-community/whisper-large-v3-turbo",
    "speak": "does not speak; load a model that does, such as mlx-community/Qwen3-TTS-12Hz-0.6B-CustomVoice-bf16",
}
"""For each capability, what a model without it lacks, and which kind of model to load instead."""


def check_capability(lease: Lease, capability: str, name: str) -> None:
    """Check that the leased worker's model has a capability.

    Args:
        lease: The lease.
        capability: The capability: `embed`, `transcribe` or `speak`.
        name: The model's name in the request.

    Raises:
        ApiError: The model lacks it.
    """
    if capability not in lease.model.capabilities:
        message = f"model: {name[:200]} {_ADVICE[capability]}"
        raise ApiError(501, message, code="unsupported", param="model")
