"""Load the tokenizer of a model folder."""

import importlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from lmwire_protocol import RequestError

from .architectures import generation_eos_tokens, import_architecture
from .model_files import read_json
from .remote_code import untrusted_code_error
from .tokenizer import Tokenizer, decoder_kind
from .tokenizer_check import check_tokenizer
from .tokenizer_files import SETTINGS, TOKENIZER, read_tokenizer
from .weights import summarize_exception

_PROGRAM: Final = "chat_template_type"
"""The setting that names a program in Python instead of a template."""
_MODULE: Final = re.compile("[a-z0-9_]{1,100}")
"""The names of mlx-lm's modules with programs that render conversations."""


def load_tokenizer(folder: Path, config: Mapping[str, Any], *, trust_remote_code: bool) -> Tokenizer:
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
        settings = read_json(path) if (path := folder / SETTINGS).exists() else {}
        defaults = _defaults(config)
        ends = generation_eos_tokens(folder) or config.get("eos_token_id")
        ends = defaults.get("eos_token_ids") if ends is None else ends
        options: dict[str, Any] = {
            "eos_token_ids": (ends,) if isinstance(ends, int) else ends or (),
            "tool_parser_type": settings.get("tool_parser_type", defaults.get("tool_parser_type")),
        }
        found = read_tokenizer(folder, config, settings, **options)
        if found is None:
            found = _load_with_transformers(folder, trust_remote_code=trust_remote_code, **options)
        if program := settings.get(_PROGRAM, defaults.get(_PROGRAM)):
            _use_program(found, program, wins=_PROGRAM in settings)
        return found
    except RequestError:
        raise
    except BaseException as error:  # transformers and its tokenizers raise whatever a file leads to
        if "trust_remote_code" in str(error):
            raise untrusted_code_error(f"the tokenizer of {folder} brings its own code") from None
        raise RequestError(
            "bad_model", f"the tokenizer of {folder} does not load: {summarize_exception(error)}"
        ) from None


def _load_with_transformers(folder: Path, *, trust_remote_code: bool, **options: Any) -> Tokenizer:
    """Return a tokenizer that only transformers can read.

    Raises:
        RequestError: unsupported.
    """
    import mlx_lm.tokenizer_utils  # noqa: F401 (registers a class of its own)
    from transformers import AutoTokenizer, TokenizersBackend

    from .transformers_tokenizer import TransformersTokenizer

    inner: Any = AutoTokenizer.from_pretrained(folder, trust_remote_code=trust_remote_code)
    if not isinstance(inner, TokenizersBackend) and not trust_remote_code:
        problem = f"the tokenizer of {folder} is of class {type(inner).__name__}, which no process can limit"
        raise RequestError("unsupported", f"{problem}; give it a tokenizer.json, or set `trust_remote_code`")
    has_decoder = isinstance(inner, TokenizersBackend) and (folder / TOKENIZER).exists()
    kind = decoder_kind(inner.backend_tokenizer.decoder) if has_decoder else "other"
    return TransformersTokenizer(inner, kind=kind, **options)


def _use_program(tokenizer: Tokenizer, name: Any, *, wins: bool) -> None:
    """Let a program of mlx-lm render conversations.

    Args:
        tokenizer: Receives the program.
        name: The module that has it.
        wins: Whether it replaces a template of the folder.
    """
    if not (isinstance(name, str) and _MODULE.fullmatch(name)):
        raise ValueError(f"{_PROGRAM} is not the name of a module")
    module = importlib.import_module(f"mlx_lm.chat_templates.{name}")
    if wins or tokenizer.chat_template is None:
        tokenizer.renderer, tokenizer.renders_tokens = module.apply_chat_template, False


def _defaults(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the module of a model's architecture says of its tokenizers; empty for most models."""
    try:
        return getattr(import_architecture(config), "TOKENIZER_DEFAULTS", None) or {}
    except (KeyError, ValueError, TypeError):
        return {}
