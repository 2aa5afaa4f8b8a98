"""Check a model folder's tokenizer before a library of the worker reads it: its bounds, and a trial in the sandbox."""

from pathlib import Path
from typing import Any, Final

from lmwire_protocol import RequestError

from ..sandbox import LimitExceeded, Limits, Sandbox
from .model_files import MAX_TEXT_BYTES, bad_model, read_file, read_json
from .tokenizer_program import MAX_ADDED_TOKENS, MAX_NESTING, TokenizerProgram, read_program

TRIAL_LIMITS: Final = Limits(cpu_seconds=60.0, memory_bytes=6 * 2**30)
"""The most that a trial may take. A vocabulary of a million tokens takes a few seconds; its conversion may take 20."""
KNOWN_CLASSES: Final = frozenset(
    {
        "TokenizersBackend", "PreTrainedTokenizer", "Qwen2Tokenizer", "Qwen3_5Tokenizer", "GPT2Tokenizer",
        "LlamaTokenizer", "CodeLlamaTokenizer", "GemmaTokenizer", "CohereTokenizer", "GPTNeoXTokenizer",
        "BertTokenizer", "DistilBertTokenizer", "RobertaTokenizer", "XLMRobertaTokenizer", "MPNetTokenizer",
        "T5Tokenizer", "WhisperTokenizer", "CLIPTokenizer",
    }
)  # fmt: skip
"""Classes of transformers that only load a tokenizer.json. Without `Fast`, which many folders append."""
_TOKENIZER: Final = "tokenizer.json"
_SETTINGS: Final = "tokenizer_config.json"
_TOKEN_LISTS: Final = ("added_tokens_decoder", "additional_special_tokens", "extra_special_tokens")


def check_tokenizer(folder: Path, *, trust_remote_code: bool, must_be_linear: bool = False) -> None:
    """Refuse a folder whose tokenizer takes endless time or memory to load or to use.

    Args:
        folder: The model's folder.
        trust_remote_code: Whether the folder's own code may run. Such a tokenizer is not tried.
        must_be_linear: Refuse a tokenizer that is not known to take linear time: no process can be ended for its texts.

    Raises:
        RequestError: bad_model.
    """
    program = _read_program(folder)
    settings = _check_settings(folder)
    name = settings.get("tokenizer_class")
    is_known = name is None or (isinstance(name, str) and name.removesuffix("Fast") in KNOWN_CLASSES)
    if must_be_linear and not trust_remote_code and program is not None and not program.is_linear:
        raise bad_model(folder / _TOKENIZER, "has steps that are not known to take linear time; use a usual tokenizer")
    if trust_remote_code or (program is None and not (folder / _SETTINGS).exists()):
        return
    if program is None or not is_known:
        _try(folder, "transformers", program.texts if program else [])
    elif not program.is_linear:
        _try(folder, "tokenizers", program.texts)


def _read_program(folder: Path) -> TokenizerProgram | None:
    path = folder / _TOKENIZER
    return read_program(path, read_file(path, MAX_TEXT_BYTES)) if path.exists() else None


def _check_settings(folder: Path) -> dict[str, Any]:
    """Check the files around a tokenizer.json, and return tokenizer_config.json; empty without one."""
    settings: dict[str, Any] = {}
    for name in (_SETTINGS, "special_tokens_map.json", "added_tokens.json"):
        path = folder / name
        if not path.exists():
            continue
        content = read_json(path)
        _check_depth(path, content)
        lists = [content, *(content.get(key) for key in _TOKEN_LISTS)]
        count = max(len(part) for part in lists if isinstance(part, dict | list))
        if count > MAX_ADDED_TOKENS:
            raise bad_model(path, f"adds {count:,} tokens; {MAX_ADDED_TOKENS:,} are the most that are loaded")
        if name == _SETTINGS:
            settings = content
    return settings


def _check_depth(path: Path, content: Any) -> None:
    waiting = [(content, 0)]
    while waiting:
        value, depth = waiting.pop()
        if depth > MAX_NESTING:
            raise bad_model(path, f"is nested deeper than {MAX_NESTING} levels")
        if isinstance(value, dict | list):
            waiting += [(member, depth + 1) for member in (value.values() if isinstance(value, dict) else value)]


def _try(folder: Path, library: str, texts: list[str]) -> None:
    sandbox = Sandbox()
    question = {"subject": "try_tokenizer", "folder": str(folder), "library": library, "texts": texts}
    try:
        problem = sandbox.ask(question, TRIAL_LIMITS)["error"]
    except LimitExceeded as limit:
        problem = f"{limit} on a few texts"
    finally:
        sandbox.close()
    if problem:
        raise RequestError("bad_model", f"the tokenizer of {folder} {problem}")
