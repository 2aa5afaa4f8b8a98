"""Rejection of fields of OpenAI's API that lmwire does not support."""

from collections.abc import Mapping

from ..errors import invalid_field


def reject_fields(body: object, reasons: Mapping[str, str], path: str = "") -> None:
    """Reject a request that has unsupported fields.

    Args:
        body: The request's body, or a part of it.
        reasons: For each field, why it is not supported and what to do instead.
        path: The path of that part.

    Raises:
        ApiError: A field is present.
    """
    for name, reason in reasons.items():
        if getattr(body, name) is not None:
            field = f"{path}.{name}" if path else name
            raise invalid_field(f"{field}: {reason}", field)
