"""Compare what a config.json claims with the tensors that are there, before a library builds what it claims."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, TypeAlias

from lmwire_protocol.imports import lazy_pattern

from .model_files import bad_model, shown

Tensors = dict[str, tuple[int, ...]]
"""Shapes by tensor name."""

THINKER_CONFIG: Final = "thinker_config"
"""Field with the configuration of the part that takes text and media, in models that also speak."""
MAX_NESTING: Final = 32
"""Maximum depth of a config.json; libraries walk it by recursion."""
MAX_NAME_CHARACTERS: Final = 500
"""Longest name of a field; quantised models name each layer by its path, of some 80 characters."""
MAX_FIELDS: Final = 200_000
"""Most fields of a config.json, and of objects and lists in its lists. Quantised models have some thousands."""
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
_DIVISORS: Final = lazy_pattern(
    r"(?:^|_)(?:hidden_size|vocab_size|head_dim|attention_heads|key_value_heads|heads|head|patch_size|merge_size|kernel"
    r"|kernel_size|strides?|groups?|group_size|bits)$"
)
"""Fields that are above 0: MLX divides by some of them without looking, which ends the process where one is 0."""
_LAYERS: Final = lazy_pattern(r"(?:^|_)(?:layers?|depths?|blocks?)$")
_PARTS: Final = lazy_pattern(r"(?:^|_)(?:experts?|heads?)$")
_SIZES: Final = lazy_pattern(r"(?:^|_)(?:size|dims?|rank|embd|width|channels|features|state|model)$")


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
    for field, value in _fields(path, config):
        key = field[-1]
        numbers = value if isinstance(value, list) else [value]
        if key in WHOLE_NUMBER_FIELDS and any(
            number is not None and (type(number) is not int or number < 0) for number in numbers
        ):
            raise bad_model(path, f"has {_join(field)} {shown(value)}, which must be a whole number of 0 or more")
        numbers = [number for number in numbers if isinstance(number, int | float) and not isinstance(number, bool)]
        if not numbers:
            continue
        most = max(numbers, key=_rank)
        if _DIVISORS.search(key) and 0 in numbers:
            raise bad_model(path, f"has {_join(field)} 0, which must be above 0")
        if _LAYERS.search(key) and most > min(MAX_LAYERS, len(tensors)):
            problem = f"the model has {len(tensors)} tensors, and {MAX_LAYERS:,} layers are the most that are loaded"
            raise bad_model(path, f"claims {shown(most)} layers ({_join(field)}); {problem}")
        if _PARTS.search(key) and most > parts:
            raise bad_model(path, f"claims {_join(field)} {shown(most)}, which no tensor of the model bears out")
        if _SIZES.search(key) and most > sizes:
            raise bad_model(path, f"claims {_join(field)} {shown(most)}; the widest tensor of the model has {widest}")


def _rank(number: float) -> float:
    """Return a number that orders others, also NaN, which no other is above or below."""
    return number if number >= 0 else -1


_Field: TypeAlias = tuple[Any, str]
"""The parent of a field, None at the top, and the field's name. Whole paths would take far more memory."""


def _fields(path: Path, config: Mapping[str, Any]) -> Iterator[tuple[_Field, Any]]:
    """Yield all fields."""
    waiting: list[tuple[_Field | None, Any, int]] = [(None, config, 0)]
    count = 0
    while waiting:
        count += 1
        if count + len(waiting) > MAX_FIELDS:
            raise bad_model(path, f"has more than {MAX_FIELDS:,} fields")
        field, value, depth = waiting.pop()
        if depth > MAX_NESTING:
            raise bad_model(path, f"is nested deeper than {MAX_NESTING} levels")
        if isinstance(value, dict):
            if longest := next((key for key in value if len(key) > MAX_NAME_CHARACTERS), None):
                problem = f"the longest that is read has {MAX_NAME_CHARACTERS}"
                raise bad_model(path, f"has a field of {len(longest):,} characters; {problem}")
            waiting += [((field, key), part, depth + 1) for key, part in value.items()]
            continue
        assert field is not None, "a configuration is an object"
        if isinstance(value, list):
            waiting += [((field, "[]"), part, depth + 1) for part in value if isinstance(part, dict | list)]
        yield field, value


def _join(field: _Field) -> str:
    """Return the path of a field."""
    names: list[str] = []
    parent: _Field | None = field
    while parent is not None:
        parent, name = parent
        names.append(name)
    return ".".join(reversed(names)).replace(".[]", "[]")
