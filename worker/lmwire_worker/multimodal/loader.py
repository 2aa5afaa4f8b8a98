"""Open the multimodal part of a model, beside the generation loader's own steps."""

from pathlib import Path
from typing import Any, Final

from mlx_vlm import utils

from lmwire_protocol import Load, RequestError

from ..engine.interface import Report
from ..media import MediaKind, MediaPolicy
from ..models.tokenizer import Tokenizer, copy_chat_template
from ..models.weights import SharedWeights, summarize_exception
from . import vision_model
from .detect import SUPPORTED_TYPES
from .input_builder import MediaInputBuilder
from .network import MultimodalNetwork
from .parity_check import ParityCheck, ParityError
from .processor import MultimodalProcessor

UNSUPPORTED_FIELDS: Final = ("draft_path", "kv_bits")


def has_architecture(config: dict[str, Any]) -> bool:
    """Return whether mlx-vlm has the architecture of a model, by the type in its config.json."""
    try:
        return utils.get_model_type(config) in SUPPORTED_TYPES and hasattr(utils.get_model_and_args(config)[0], "Model")
    except (ValueError, KeyError, ImportError, TypeError, AttributeError):
        return False


class MultimodalLoader:
    """The load of a model that takes images or sounds.

    Args:
        request: The load.
        folder: The model's folder.

    Raises:
        RequestError: unsupported.
    """

    def __init__(self, request: Load, folder: Path) -> None:
        self.supports_batching = True
        """True if rows may run together. Known once `open` has returned."""
        self._folder = folder
        self._trust = request.trust_remote_code
        self._processor: Any = None
        self._inputs: MediaInputBuilder | None = None
        for field in UNSUPPORTED_FIELDS:
            if getattr(request, field) is not None:
                problem = f"{field}: {folder} takes images, and such models are loaded without it; leave it out"
                raise RequestError("unsupported", problem, field=field)

    def open_base(self, folder: Path, *, trust_remote_code: bool) -> SharedWeights:
        """Open the model without its weights; see `vision_model.open_base`.

        Args:
            folder: The model's folder.
            trust_remote_code: Whether the folder's own code may run.
        """
        return vision_model.open_base(folder, trust_remote_code=trust_remote_code)

    def open_processor(self, network: MultimodalNetwork, tokenizer: Tokenizer) -> None:
        """Open the processor, which prepares images and sounds. The weights may still be missing.

        Args:
            network: The model.
            tokenizer: Receives the processor's chat template if it has none.

        Raises:
            RequestError: bad_model, unsupported.
        """
        self._processor, self._inputs = vision_model.open_processor(
            self._folder, network, trust_remote_code=self._trust
        )
        copy_chat_template(tokenizer, self._processor)

    def open(self, network: MultimodalNetwork, policy: MediaPolicy, report: Report) -> MultimodalProcessor:
        """Check images and sounds against mlx-vlm, and return the processor of those that agree.

        Args:
            network: The model, with its weights in memory.
            policy: The files and URLs that may be read.
            report: Receives the progress.

        Raises:
            RequestError: unsupported, if neither images nor sounds agree.
            LoadCancelled: From `report`.
        """
        assert self._inputs is not None
        report("warm_up", 0, None, "steps")
        problems = {kind: self._check(network, self._inputs, kind) for kind in self._inputs.modalities}
        right: list[MediaKind] = [kind for kind in self._inputs.modalities if not problems[kind]]
        if not right:
            raise vision_model.unsupported_model(self._folder, problems["image"])
        if len(right) > 1 and self._check(network, self._inputs, *right):
            del right[1:]  # some models take either, but not both in one prompt
        if len(right) < len(problems):
            self._check(network, self._inputs, *right)  # some models keep state of the media that they took last
        self._inputs.keep_modalities(right)
        return MultimodalProcessor(network, self._inputs, policy)

    def _check(self, network: MultimodalNetwork, inputs: MediaInputBuilder, *kinds: MediaKind) -> str:
        """Return the reason that the model fails on these kinds of media; empty if it does not."""
        try:
            trial = ParityCheck(network, self._processor, inputs, kinds)
            trial.check()
            self.supports_batching = self.supports_batching and trial.supports_batching()
            inputs.record_token_bytes(trial.token_bytes)
        except ParityError as error:
            return str(error)
        except BaseException as error:  # models raise whatever a wrong configuration leads to
            return f"it fails on a first {' and '.join(kinds)}: {summarize_exception(error)}"
        finally:
            inputs.feature_cache.clear()
        return ""
