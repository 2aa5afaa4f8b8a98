"""The input items of a stored response, in pages."""

from collections.abc import Mapping, Sequence
from typing import Final, Literal

import msgspec
from msgspec import Struct

from ...errors import invalid_field
from .items import InputItem, InputText, Message, OutputText

_LIMITS: Final = range(1, 101)


class ItemList(Struct, kw_only=True):
    """A page of items."""

    object: Literal["list"] = "list"
    data: list[InputItem]
    first_id: str | None
    last_id: str | None
    has_more: bool


def list_items(items: Sequence[InputItem], query: Mapping[str, str]) -> ItemList:
    """Return the page that a query asks for.

    Args:
        items: All items.
        query: `order` (`desc` or `asc`), `after` (the id of the item before the page) and `limit` (items per page).

    Raises:
        ApiError: The query is invalid.
    """
    order, limit = query.get("order", "desc"), query.get("limit", "20")
    if order not in {"asc", "desc"}:
        raise invalid_field(f"order: must be asc or desc, not {order!r}", "order")
    if not limit.isdecimal() or int(limit) not in _LIMITS:
        raise invalid_field(f"limit: must be a number from 1 to 100, not {limit!r}", "limit")
    ordered = [*map(_to_listed, items if order == "asc" else reversed(items))]
    start = _index_after(ordered, query["after"]) if "after" in query else 0
    page = ordered[start : start + int(limit)]
    return ItemList(
        data=page,
        first_id=page[0].id if page else None,
        last_id=page[-1].id if page else None,
        has_more=start + len(page) < len(ordered),
    )


def _index_after(items: Sequence[InputItem], after: str) -> int:
    for number, item in enumerate(items, 1):
        if item.id == after:
            return number
    raise invalid_field(f"after: there is no item {after!r} here", "after")


def _to_listed(item: InputItem) -> InputItem:
    """Return the item with its text as a part, in whichever form it was sent."""
    if isinstance(item, Message) and isinstance(item.content, str):
        part = OutputText(text=item.content) if item.role == "assistant" else InputText(text=item.content)
        return msgspec.structs.replace(item, content=[part])
    return item
