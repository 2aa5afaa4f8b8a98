"""Tokenizers of model folders."""

from pathlib import Path
from typing import Any

from mlx_lm import utils
from mlx_lm.tokenizer_utils import TokenizerWrapper
from transformers import TokenizersBackend

from lmwire_protocol import RequestError

from .remote_code import untrusted_code_error
from .tokenizer_check import check_tokenizer
from .weights import summarize_exception


def load_tokenizer(folder: Path, config: dict[str, Any], *, trust_remote_code: bool) -> TokenizerWrapper:
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
        eos_token_ids = utils.load_config(folder).get("eos_token_id")
        tokenizer = utils.load_tokenizer(folder, {"trust_remote_code": trust_remote_code}, eos_token_ids=eos_token_ids)
    except BaseException as error:  # transformers raises whatever its tokenizers raise
        if "trust_remote_code" in str(error):
            raise untrusted_code_error(f"the tokenizer of {folder} brings its own code") from None
        raise RequestError(
            "bad_model", f"the tokenizer of {folder} does not load: {summarize_exception(error)}"
        ) from None
    inner: Any = tokenizer._tokenizer
    if not isinstance(inner, TokenizersBackend) and not trust_remote_code:
        problem = f"the tokenizer of {folder} is of class {type(inner).__name__}, which no process can limit"
        raise RequestError("unsupported", f"{problem}; give it a tokenizer.json, or set `trust_remote_code`")
    return tokenizer


def copy_chat_template(tokenizer: TokenizerWrapper, processor: Any) -> None:
    """Give a tokenizer the processor's chat template if it has none: some models have it there alone.

    Args:
        tokenizer: Receives the template.
        processor: A processor of mlx-vlm.
    """
    template = getattr(processor, "chat_template", None)
    if template and not tokenizer.has_chat_template:
        tokenizer._tokenizer.chat_template = template
        tokenizer.has_chat_template = True
