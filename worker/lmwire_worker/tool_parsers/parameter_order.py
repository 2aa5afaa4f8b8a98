"""The order of a function's positional parameters, for the prompt, the parser and the grammar alike."""

from collections.abc import Mapping
from typing import Any


def parameters_in_order(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the properties of a schema of arguments, required ones first.

    Python allows no parameter without a default after one with a default.
    """
    properties = schema.get("properties")
    required = schema.get("required")
    if not isinstance(properties, dict):
        return {}
    if not isinstance(required, list):
        return properties
    names = {name for name in required if isinstance(name, str)}
    return dict(sorted(properties.items(), key=lambda item: item[0] not in names))
