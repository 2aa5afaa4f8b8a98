"""Check the settings of a model that libraries take as they are: its type, its eos tokens and its chat templates."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from lmwire_protocol import RequestError

from .model_files import CONFIG, GENERATION_CONFIG, bad_model, read_any_json, shown

TOKENIZER_CONFIG: Final = "tokenizer_config.json"
MAX_EOS_TOKENS: Final = 1_000
"""Most eos tokens of a model; models have less than 10."""
MAX_TEMPLATES: Final = 100
"""Most chat templates of a model; models have one or two."""
MAX_TEMPLATE_CHARACTERS: Final = 1_000_000
"""Longest chat template of a model; the longest ones have some 30,000 characters."""
_MODEL_TYPE: Final = re.compile(r"\w[\w. +-]{0,99}", re.ASCII)
_MAX_TOKEN: Final = 2**31 - 1


def check_settings(folder: Path, config: Mapping[str, Any]) -> None:
    """Refuse settings that no model has. The type may be absent.

    Args:
        folder: The model's folder.
        config: Its config.json.

    Raises:
        RequestError: bad_model.
    """
    if config.get("model_type") is not None:
        _check_model_type(folder / CONFIG, config["model_type"])
    _check_eos_tokens(folder / CONFIG, config)
    _check_eos_tokens(folder / GENERATION_CONFIG, _read_object(folder / GENERATION_CONFIG))
    settings = _read_object(folder / TOKENIZER_CONFIG)
    _check_templates(folder / TOKENIZER_CONFIG, settings.get("chat_template"))
    for path in (folder / "chat_template.jinja", *folder.glob("chat_templates/*.jinja")):
        if path.exists() and path.stat().st_size > MAX_TEMPLATE_CHARACTERS:
            raise bad_model(path, f"is longer than {MAX_TEMPLATE_CHARACTERS:,} bytes, the most that a template has")


def _check_model_type(path: Path, kind: Any) -> None:
    """Refuse a model type that cannot be a module's name: it is imported, and errors and logs show it."""
    if not (isinstance(kind, str) and _MODEL_TYPE.fullmatch(kind)):
        problem = "which must be a name of at most 100 letters, digits, hyphens and underscores"
        raise bad_model(path, f"has the model_type {shown(kind)}, {problem}")


def _read_object(path: Path) -> dict[str, Any]:
    """Return the object in a file; an empty one if there is none, or if it is damaged: not every model needs it."""
    if not path.exists():
        return {}
    try:
        content = read_any_json(path)
    except RequestError:
        return {}
    if not isinstance(content, dict):
        raise bad_model(path, "is not a JSON object")
    return content


def _check_eos_tokens(path: Path, config: Mapping[str, Any]) -> None:
    tokens = config.get("eos_token_id")
    listed: list[Any] = tokens if isinstance(tokens, list) else [] if tokens is None else [tokens]
    if len(listed) > MAX_EOS_TOKENS:
        raise bad_model(path, f"has {len(listed):,} tokens in eos_token_id; at most {MAX_EOS_TOKENS:,} are read")
    for token in listed:
        if type(token) is not int or not 0 <= token <= _MAX_TOKEN:
            raise bad_model(path, f"has {shown(token)} in eos_token_id, which must be a token id or a list of them")


def _check_templates(path: Path, templates: Any) -> None:
    """Refuse chat templates that are neither a text nor a list of named texts."""
    if isinstance(templates, list):
        if len(templates) > MAX_TEMPLATES:
            raise bad_model(path, f"has {len(templates):,} chat templates; at most {MAX_TEMPLATES} are read")
        for template in templates:
            if not (isinstance(template, dict) and isinstance(template.get("name"), str)):
                problem = "must be an object with a name and a template"
                raise bad_model(path, f"has {shown(template)} in chat_template, which {problem}")
        if len({template["name"] for template in templates}) < len(templates):
            raise bad_model(path, "has two chat templates of one name")
        texts = [template.get("template") for template in templates]
    elif isinstance(templates, dict):
        texts = [*templates.values()]
        if len(texts) > MAX_TEMPLATES:
            raise bad_model(path, f"has {len(texts):,} chat templates; at most {MAX_TEMPLATES} are read")
    else:
        texts = [] if templates is None else [templates]
    for text in texts:
        if not isinstance(text, str):
            raise bad_model(path, f"has {shown(text)} as a chat template, which must be a text")
        if len(text) > MAX_TEMPLATE_CHARACTERS:
            problem = f"of {len(text):,} characters; the longest that is read has {MAX_TEMPLATE_CHARACTERS:,}"
            raise bad_model(path, f"has a chat template {problem}")
