"""Compare what a config.json claims with the tensors that are there, before a library builds what it claims."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from .model_files import bad_model

Tensors = dict[str, tuple[int, ...]]
"""Shapes by tensor name."""

THINKER_CONFIG: Final = "thinker_config"
"""Field with the configuration of the part that takes text and media, in models that also speak."""
MAX_NESTING: Final = 32
"""Maximum depth of a config.json; libraries walk it by recursion."""
MAX_LAYERS: Final = 1_000
"""Maximum number of layers. The deepest models have less than 200, and each layer takes a millisecond to build."""
ALWAYS_ACCEPTED_SIZE: Final = 2**20
"""A size that is accepted whatever the tensors show: some sizes have no tensor of their own."""
MAX_PACKED_VALUES: Final = 32
"""Maximum number of values in one element of a quantised tensor."""
WHOLE_NUMBER_FIELDS: Final = (
    "num_hidden_layers", "n_layers", "n_layer", "num_layers", "hidden_size", "vocab_size", "intermediate_size",
    "num_attention_heads", "num_key_value_heads", "head_dim", "num_experts", "num_local_experts", "n_routed_experts",
)  # fmt: skip
"""Fields that are whole numbers, or lists of these, in every model."""
_DIVISORS: Final = re.compile(
    r"(?:^|_)(?:hidden_size|vocab_size|head_dim|attention_heads|key_value_heads|heads|head|patch_size|merge_size|kernel"
    r"|kernel_size|strides?|groups?|group_size|bits)$"
)
"""Fields that are above 0: MLX divides by some of them without looking, which ends the process where one is 0."""
_LAYERS: Final = re.compile(r"(?:^|_)(?:layers?|depths?|blocks?)$")
_PARTS: Final = re.compile(r"(?:^|_)(?:experts?|heads?)$")
_SIZES: Final = re.compile(r"(?:^|_)(?:size|dims?|rank|embd|width|channels|features|state|model)$")


def understanding_part(config: dict[str, Any]) -> dict[str, Any]:
    """Return a config.json, completed by the fields of the part that takes text and media if these are in an object.

    Args:
        config: The config.json.
    """
    part = config.get(THINKER_CONFIG)
    return {**part, **config} if isinstance(part, dict) else config


def check_config(path: Path, config: Mapping[str, Any], tensors: Tensors) -> None:
    """Refuse counts and sizes that the tensors do not bear out.

    Args:
        path: The config.json, for the error.
        config: What it holds.
        tensors: The shapes of all tensors of the model.

    Raises:
        RequestError: bad_model.
    """
    widest = max((size for shape in tensors.values() for size in shape), default=0)
    sizes = max(ALWAYS_ACCEPTED_SIZE, widest * MAX_PACKED_VALUES)
    parts = max(len(tensors), widest)
    for name, value in _fields(path, config):
        key = name.rpartition(".")[2]
        numbers = value if isinstance(value, list) else [value]
        if key in WHOLE_NUMBER_FIELDS and any(
            number is not None and (type(number) is not int or number < 0) for number in numbers
        ):
            raise bad_model(path, f"has {name} {_short(value)}, which must be a whole number of 0 or more")
        for number in numbers:
            if isinstance(number, bool) or not isinstance(number, int | float):
                continue
            if number == 0 and _DIVISORS.search(key):
                raise bad_model(path, f"has {name} {_short(number)}, which must be above 0")
            if _LAYERS.search(key) and number > min(MAX_LAYERS, len(tensors)):
                problem = (
                    f"the model has {len(tensors)} tensors, and {MAX_LAYERS:,} layers are the most that are loaded"
                )
                raise bad_model(path, f"claims {_short(number)} layers ({name}); {problem}")
            if _PARTS.search(key) and number > parts:
                raise bad_model(path, f"claims {name} {_short(number)}, which no tensor of the model bears out")
            if _SIZES.search(key) and number > sizes:
                raise bad_model(path, f"claims {name} {_short(number)}; the widest tensor of the model has {widest}")


def _fields(path: Path, config: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield all fields with their paths."""
    waiting: list[tuple[str, Any, int]] = [("", config, 0)]
    while waiting:
        name, value, depth = waiting.pop()
        if depth > MAX_NESTING:
            raise bad_model(path, f"is nested deeper than {MAX_NESTING} levels")
        if isinstance(value, dict):
            waiting += [(f"{name}.{key}" if name else key, part, depth + 1) for key, part in value.items()]
            continue
        if isinstance(value, list):
            waiting += [(f"{name}[]", part, depth + 1) for part in value if isinstance(part, dict | list)]
        yield name, value


def _short(value: Any) -> str:
    try:
        text = repr(value)
    except ValueError:  # more digits than Python writes
        return "a number of thousands of digits"
    return text if len(text) <= 40 else f"{text[:40]}…"
