"""The sampling defaults in a model's generation_config.json."""

import sys
from pathlib import Path
from typing import Any

import msgspec

from lmwire_protocol import Generate, RequestError
from lmwire_protocol.events import SamplingDefaults

from .model_files import GENERATION_CONFIG, read_json, shown


def read_sampling_defaults(folder: Path) -> SamplingDefaults | None:
    """Return a model's sampling defaults; None if it has none.

    A value that a request could not have is ignored, and stderr reports it: a file of the model refuses no load.
    `do_sample` is read as Hugging Face defines it: false means greedy, and true without a temperature means 1.
    """
    path = folder / GENERATION_CONFIG
    if not path.exists():
        return None
    try:
        config = read_json(path)
    except (RequestError, OSError) as error:
        _warn(f"{path} is ignored: {error}")
        return None
    values = {name: config[name] for name in SamplingDefaults.__struct_fields__ if config.get(name) is not None}
    values = {name: value for name, value in values.items() if _is_valid(path, name, value)}
    if config.get("do_sample") is False:
        values["temperature"] = 0.0
    elif config.get("do_sample") is True:
        values.setdefault("temperature", 1.0)
    return SamplingDefaults(**values) if values else None


def _is_valid(path: Path, name: str, value: Any) -> bool:
    """Return whether a request could have a value, by the bounds of the protocol."""
    try:
        msgspec.convert({"prompt": "", name: value}, Generate)
    except (msgspec.ValidationError, UnicodeError):  # the latter for half a surrogate pair
        _warn(f"{path}: {name} is ignored, because a request cannot have {shown(value)}")
        return False
    return True


def _warn(problem: str) -> None:
    print(f"lmwire: {problem}", file=sys.stderr)
