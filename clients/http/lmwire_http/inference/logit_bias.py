"""Logit biases by token id, as JSON objects have them: their keys are texts."""

import re
from collections.abc import Mapping
from typing import Annotated, Any, Final, TypeAlias

from msgspec import Meta

from ..errors import invalid_field
from ..limits import Biases

LogitBias: TypeAlias = Biases[Annotated[Any, Meta(extra_json_schema={"type": "number"})]]
_TOKEN_ID: Final = re.compile(r"0|-?[1-9][0-9]{0,15}", re.ASCII)


def token_biases(given: LogitBias | None) -> Mapping[str, dict[int, float]]:
    """Return the field as the client library takes it; empty if it is absent.

    Args:
        given: The field in the request.

    Raises:
        ApiError: A key is not a token id, or a value is not a number. The error names the key.
    """
    if given is None:
        return {}
    for key, bias in given.items():
        field = f"logit_bias.{key[:64]}"
        if not _TOKEN_ID.fullmatch(key):
            raise invalid_field(f"{field}: the key must be a token id, such as 40", field)
        if isinstance(bias, bool) or not isinstance(bias, int | float):
            raise invalid_field(f"{field}: must be a number", field)
    return {"logit_bias": {int(key): bias for key, bias in given.items()}}
