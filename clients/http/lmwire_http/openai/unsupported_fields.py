"""Fields of OpenAI's API that are known here and cannot be honoured."""

from collections.abc import Mapping

from ..errors import invalid_field


def refuse(body: object, reasons: Mapping[str, str], path: str = "") -> None:
    """Refuses what is given of some fields.

    Args:
        body: The request, or a part of it.
        reasons: By the field's name: why not, and what to do instead.
        path: Where in the body this is.

    Raises:
        ApiError: one of them is given.
    """
    for name, reason in reasons.items():
        if getattr(body, name) is not None:
            field = f"{path}.{name}" if path else name
            raise invalid_field(f"{field}: {reason}", field)
