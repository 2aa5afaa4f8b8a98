"""API keys."""

import hmac
from collections.abc import Mapping, Sequence

from ..failures import ApiError


def check_key(headers: Mapping[str, str], keys: Sequence[str]) -> None:
    """Lets a request pass that brings one of the keys, as `Authorization: Bearer KEY` or as `x-api-key: KEY`.

    Raises:
        ApiError: it brings none of them. How long that takes tells nothing of the keys but their lengths.
    """
    if not keys:
        return
    scheme, _, token = headers.get("authorization", "").partition(" ")
    given = headers.get("x-api-key", "") or (token.strip() if scheme.lower() == "bearer" else "")
    # Not any(): every key is compared, so that the time does not tell which one came close.
    if not sum([hmac.compare_digest(given.encode(), key.encode()) for key in keys]):
        problem = "this API key is not known here" if given else "an API key is needed: Authorization: Bearer KEY"
        raise ApiError(401, problem, code="invalid_api_key")
