"""Opens the part of a model that sees and hears, beside the text engine's own steps of a load."""

from pathlib import Path
from typing import Any, Final

from mlx_lm.tokenizer_utils import TokenizerWrapper
from mlx_vlm import utils

from lmwire_protocol import Load, RequestError

from ..engine.interface import Report
from ..media import Kind, Policy
from ..models.shared_weights import SharedWeights
from ..models.weights import summarize_exception
from . import vision_model
from .detect import SERVED
from .media_input import Pictures
from .network import SeeingNetwork
from .parity_check import OtherSight, Trial
from .processor import Sight

UNSERVED: Final = ("draft_path", "kv_bits")


def knows(config: dict[str, Any]) -> bool:
    """Whether mlx-vlm has a model's architecture, under the type that its config.json names."""
    try:
        return utils.get_model_type(config) in SERVED and hasattr(utils.get_model_and_args(config)[0], "Model")
    except (ValueError, KeyError, ImportError, TypeError, AttributeError):
        return False


class Eyes:
    """A load of a model that sees.

    Args:
        request: The load.
        folder: The model's.

    Raises:
        RequestError: unsupported.
    """

    def __init__(self, request: Load, folder: Path) -> None:
        self.batches = True
        """Whether rows may run together; known when it is open."""
        self._folder = folder
        self._trust = request.trust_remote_code
        self._processor: Any = None
        self._pictures: Pictures | None = None
        for field in UNSERVED:
            if getattr(request, field) is not None:
                problem = f"{field}: {folder} is a model that sees, and those are loaded without; leave it out"
                raise RequestError("unsupported", problem, field=field)

    def open_base(self, folder: Path, *, trust_remote_code: bool) -> SharedWeights:
        """See `loading.open_base`."""
        return vision_model.open_base(folder, trust_remote_code=trust_remote_code)

    def open_processor(self, network: SeeingNetwork, tokenizer: TokenizerWrapper) -> None:
        """Reads what makes pictures of images and sounds. The weights need not be there yet.

        Raises:
            RequestError: bad_model, unsupported.
        """
        self._processor, self._pictures = vision_model.open_pictures(
            self._folder, network, trust_remote_code=self._trust
        )
        vision_model.lend_template(tokenizer, self._processor)

    def open(self, network: SeeingNetwork, policy: Policy, report: Report) -> Sight:
        """What the lane sees and hears with, tried out: a model may do only one of the two as it should.

        Raises:
            RequestError: unsupported, when it does neither.
            LoadCancelled: from `report`.
        """
        assert self._pictures is not None
        report("warm_up", 0, None, "steps")
        problems = {kind: self._try(network, self._pictures, kind) for kind in self._pictures.senses}
        right: list[Kind] = [kind for kind in self._pictures.senses if not problems[kind]]
        if not right:
            raise vision_model.refusal(self._folder, problems["image"])
        if len(right) > 1 and self._try(network, self._pictures, *right):
            del right[1:]  # some models take either, but not both in one prompt
        if len(right) < len(problems):
            self._try(network, self._pictures, *right)  # some change themselves for what they were given last
        self._pictures.senses = {kind: self._pictures.senses[kind] for kind in right}
        return Sight(network, self._pictures, policy)

    def _try(self, network: SeeingNetwork, pictures: Pictures, *kinds: Kind) -> str:
        """What is wrong with what the model makes of these kinds; nothing when all is right."""
        try:
            trial = Trial(network, self._processor, pictures, kinds)
            trial.check()
            self.batches = self.batches and trial.batches()
            pictures.token_bytes = max(pictures.token_bytes, trial.token_bytes)
        except OtherSight as error:
            return str(error)
        except Exception as error:  # models raise whatever a wrong configuration leads to
            return f"it fails on a first {' and '.join(kinds)}: {summarize_exception(error)}"
        finally:
            pictures.shelf.clear()
        return ""
