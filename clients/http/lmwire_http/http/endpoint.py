"""What the server serves, as data: routes, metrics and the OpenAPI document are made of it."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .error_formats import OPENAI, Dialect
from .replies import Reply

if TYPE_CHECKING:
    from ..errors import ApiError
    from .context import Call


@dataclass(frozen=True, kw_only=True)
class Endpoint:
    """One path with one method.

    Args:
        method: As `POST`.
        path: As `/v1/models/{model:path}`.
        summary: A line of the OpenAPI document.
        serve: Answers a call. Its second argument is the body, or None for an endpoint without one. Raises ApiError.
        dialect: How errors are written.
        body: The Struct of the request.
        form: Whether the body comes as multipart/form-data. An uploaded file is a field of type bytes.
        reply: The type of the response's JSON; None when it is none.
        texts: Media types that it can have instead.
        events: The type of a streamed event's data, if the reply can be streamed.
        statuses: The types of the JSON that comes with other statuses, where it is no error.
        open: Whether it needs no API key.
        refusal: Makes the error with which it answers every request, before the body is read; None to serve them.
    """

    method: str
    path: str
    summary: str
    serve: "Callable[[Call, Any], Awaitable[Reply]]"
    dialect: Dialect = OPENAI
    body: Any = None
    form: bool = False
    reply: Any = None
    texts: Sequence[str] = ()
    events: Any = None
    statuses: Mapping[int, Any] = field(default_factory=dict)
    open: bool = False
    refusal: "Callable[[], ApiError] | None" = None
