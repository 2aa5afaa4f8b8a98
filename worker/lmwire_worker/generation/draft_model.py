"""Load a draft model, and pair it with its target model."""

from pathlib import Path
from typing import Any

from mlx import nn
from mlx_lm.models.cache import make_prompt_cache
from msgspec import Struct

from lmwire_protocol import Load, RequestError

from ..engine.interface import ModelInfo, Report
from ..models.folder_check import check_folder
from ..models.model_info import describe_model
from ..models.resolve import find_folder
from ..models.tokenizer import Tokenizer
from ..models.tokenizer_loading import load_tokenizer
from .batching import TargetDraftPair, name_special_caches
from .language_model import check_architecture, open_shared_weights


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
    """Return the draft model of a load; None if the load has none.

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
    try:
        trusted = request.trust_remote_code
        return _open(find_folder(request.draft_path, report, trust_remote_code=trusted), trust_remote_code=trusted)
    except RequestError as error:
        error.field = "draft_path"
        raise


def _open(folder: Path, *, trust_remote_code: bool) -> DraftModel:
    config = check_folder(folder, trust_remote_code=trust_remote_code)
    check_architecture(config)
    tokenizer = load_tokenizer(folder, config, trust_remote_code=trust_remote_code)
    base = open_shared_weights(folder, trust_remote_code=trust_remote_code)
    network = base.new_network()
    return DraftModel(network, tokenizer, describe_model(folder, base.config, network, tokenizer))


def _check_cache(name: str, network: nn.Module) -> None:
    if kinds := name_special_caches(make_prompt_cache(network)):
        problem = f"the {name} keeps a {kinds}, and refused tokens can only be taken out of a plain KV cache"
        raise _refusal(problem)


def _refusal(problem: str) -> RequestError:
    return RequestError("unsupported", f"draft_path: {problem}", field="draft_path")
