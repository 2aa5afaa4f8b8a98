"""GET /v1/models and /v1/models/{model} in Anthropic's format, for requests with the header `anthropic-version`."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final, Literal

from msgspec import UNSET, Struct, UnsetType

from ..errors import invalid_field
from ..http.context import RequestContext
from ..http.endpoint import Json, Reply, endpoint
from ..http.error_formats import ANTHROPIC_ERRORS
from ..pool import ServedModel

_DEFAULT_LIMIT: Final = 20
_MAX_LIMIT: Final = 1000
_HEADER: Final = "anthropic-version"


class AnthropicModel(Struct, kw_only=True, tag_field="type", tag="model"):
    """A model that requests can name."""

    id: str
    display_name: str
    created_at: str
    """Time of the model files; 1970 if unknown."""
    lifecycle: Literal["active"] = "active"
    """State of every model that is on the machine: requests can use it."""
    max_input_tokens: int | UnsetType = UNSET
    """Context length in tokens; absent if unknown."""


class AnthropicModels(Struct, kw_only=True):
    """A page of the models: those that the operator has named come first, then loaded ones."""

    data: list[AnthropicModel]
    has_more: bool
    first_id: str | None
    last_id: str | None


@endpoint("GET", "/v1/models", error_format=ANTHROPIC_ERRORS, response_type=AnthropicModels, required_header=_HEADER)
async def list_models(context: RequestContext, _: None) -> Reply:
    """List the models."""
    models = [_to_model(served) for served in await context.state.pool.served_models()]
    limit = _limit(context.query.get("limit"))
    if before := context.query.get("before_id"):
        earlier = models[: _index(models, before, "before_id")]
        return Json(_page(earlier[-limit:], has_more=len(earlier) > limit))
    after = context.query.get("after_id")
    later = models[_index(models, after, "after_id") + 1 :] if after else models
    return Json(_page(later[:limit], has_more=len(later) > limit))


@endpoint(
    "GET",
    "/v1/models/{model:path}",
    error_format=ANTHROPIC_ERRORS,
    response_type=AnthropicModel,
    required_header=_HEADER,
)
async def get_model(context: RequestContext, _: None) -> Reply:
    """Describe a model."""
    return Json(_to_model(await context.state.pool.served_model(context.path_params["model"])))


def _to_model(served: ServedModel) -> AnthropicModel:
    return AnthropicModel(
        id=served.id,
        display_name=served.id.rpartition("/")[2],
        created_at=datetime.fromtimestamp(served.created, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        max_input_tokens=served.context_len or UNSET,
    )


def _page(models: Sequence[AnthropicModel], *, has_more: bool) -> AnthropicModels:
    return AnthropicModels(
        data=[*models],
        has_more=has_more,
        first_id=models[0].id if models else None,
        last_id=models[-1].id if models else None,
    )


def _limit(given: str | None) -> int:
    if given is None:
        return _DEFAULT_LIMIT
    if not (given.isascii() and given.isdecimal() and 1 <= int(given[:5]) <= _MAX_LIMIT):
        raise invalid_field(f"limit: must be a number from 1 to {_MAX_LIMIT}", "limit")
    return int(given)


def _index(models: Sequence[AnthropicModel], id: str, field: str) -> int:
    found = next((place for place, model in enumerate(models) if model.id == id), None)
    if found is None:
        raise invalid_field(f"{field}: no model has the id {id[:200]!r}", field)
    return found
