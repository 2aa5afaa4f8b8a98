"""Load the tokenizer of a model folder."""

from pathlib import Path
from typing import Any

from mlx_lm import utils
from mlx_lm.tokenizer_utils import BPEStreamingDetokenizer, SPMStreamingDetokenizer, TokenizerWrapper
from transformers import TokenizersBackend

from lmwire_protocol import RequestError

from .model_files import GENERATION_CONFIG, read_json
from .remote_code import untrusted_code_error
from .tokenizer import DecoderKind, Tokenizer
from .tokenizer_check import check_tokenizer
from .transformers_tokenizer import TransformersTokenizer
from .weights import summarize_exception


def load_tokenizer(folder: Path, config: dict[str, Any], *, trust_remote_code: bool) -> Tokenizer:
    """Load a folder's tokenizer.

    Args:
        folder: The model's folder.
        config: Its config.json.
        trust_remote_code: Whether the folder's own code may run.

    Raises:
        RequestError: bad_model, unsupported.
    """
    check_tokenizer(folder, trust_remote_code=trust_remote_code)
    try:
        eos_token_ids = _eos_token_ids(folder, config)
        wrapper = utils.load_tokenizer(folder, {"trust_remote_code": trust_remote_code}, eos_token_ids=eos_token_ids)
    except BaseException as error:  # transformers raises whatever its tokenizers raise
        if "trust_remote_code" in str(error):
            raise untrusted_code_error(f"the tokenizer of {folder} brings its own code") from None
        raise RequestError(
            "bad_model", f"the tokenizer of {folder} does not load: {summarize_exception(error)}"
        ) from None
    inner: Any = wrapper._tokenizer
    if not isinstance(inner, TokenizersBackend) and not trust_remote_code:
        problem = f"the tokenizer of {folder} is of class {type(inner).__name__}, which no process can limit"
        raise RequestError("unsupported", f"{problem}; give it a tokenizer.json, or set `trust_remote_code`")
    renderer = {"renderer": wrapper._chat_template, "renders_tokens": False} if wrapper._chat_template else {}
    return TransformersTokenizer(
        inner,
        eos_token_ids=wrapper.eos_token_ids,
        tool_parser_type=inner.init_kwargs.get("tool_parser_type"),
        response_format=wrapper._response_format,
        kind=_kind(wrapper),
        **renderer,
    )


def _eos_token_ids(folder: Path, config: dict[str, Any]) -> Any:
    """Return the tokens that end a turn, as mlx-lm reads them: those of generation_config.json win."""
    path = folder / GENERATION_CONFIG
    try:
        generation = read_json(path) if path.exists() else {}
    except RequestError:  # mlx-lm goes on without a damaged file
        generation = {}
    return generation.get("eos_token_id") or config.get("eos_token_id")


def _kind(wrapper: TokenizerWrapper) -> DecoderKind:
    stock: Any = wrapper.detokenizer
    if isinstance(stock, BPEStreamingDetokenizer):
        return "byte_level"
    if isinstance(stock, SPMStreamingDetokenizer):
        return "sentencepiece_stripped" if stock.trim_space else "sentencepiece"
    return "other"
