"""Stored responses: what a later request takes from them, and the pages of their input items."""

from collections.abc import Collection, Hashable, Mapping, Sequence
from functools import cached_property
from typing import Final, Literal, NamedTuple

import msgspec
from msgspec import Struct

from lmwire_protocol.limits import LINE_IN_BYTES

from ...errors import ApiError, invalid_field
from ...http.response_store import ResponseStore
from .items import InputItem, InputText, ItemReference, Message, OutputText
from .response import Response

MAX_STORED_ITEMS: Final = 10_000
"""Most stored items in the conversation of a request."""
MAX_STORED_ITEM_BYTES: Final = LINE_IN_BYTES
"""Most bytes of the stored items in the conversation of a request: a worker takes no more."""
_OVERHEAD: Final = 256
"""Memory of an item besides its JSON, in bytes."""
_decoder: Final = msgspec.json.Decoder(InputItem)
_LIMITS: Final = range(1, 101)


class StoredResponse(NamedTuple):
    """A stored response, which requests can continue."""

    response: msgspec.Raw
    history: Sequence[bytes]
    """The items of the whole conversation before the response, without instructions, each as JSON."""
    output: Sequence[bytes]
    """The items of the response, each as JSON."""

    def input_items(self) -> list[InputItem]:
        """Return the items of the conversation before the response."""
        return [*map(_decoder.decode, self.history)]


class StoredItems:
    """The items that one request takes from the stored responses of its caller.

    Args:
        store: All stored responses.
        caller: The caller that sent the request.
        previous_response_id: The response that the request continues, if any.

    Raises:
        ApiError: The caller has no such response, or its conversation is too long.
    """

    def __init__(self, store: ResponseStore, caller: Hashable, previous_response_id: str | None) -> None:
        self._store, self._caller = store, caller
        self._count = self._bytes = 0
        self._history: Sequence[bytes] = ()
        if previous_response_id is not None:
            previous = self._find(previous_response_id)
            self._history = (*previous.history, *previous.output)
        for item in self._history:
            self._count_item(item, "previous_response_id")
        self.earlier: Sequence[InputItem] = [*map(_decoder.decode, self._history)]
        """The conversation up to the response that the request continues."""

    def resolve(self, item: InputItem | ItemReference | None, number: int) -> InputItem | None:
        """Return the item that an item of the request stands for: another one if it is a reference.

        Args:
            item: The item.
            number: Its place in the request.

        Raises:
            ApiError: The request refers to an item that neither this conversation has nor the server has made for the
                caller, or to too much.
        """
        if not isinstance(item, ItemReference):
            return item
        path, id = f"input[{number}].id", item.id or ""
        if (encoded := self._encoded.get(id) or self._store.item(self._caller, id)) is None:
            raise invalid_field(f"{path}: there is no item {id!r}, or it was deleted; send the item itself", path)
        self._count_item(encoded, path)
        return _decoder.decode(encoded)

    def keep(self, response: Response, items: Sequence[InputItem], made: Collection[InputItem]) -> None:
        """Store a response with its conversation.

        Args:
            response: The response.
            items: The items of the request.
            made: Those of them that have an id of the server.
        """
        encoded = {id(item): msgspec.json.encode(_without_logprobs(item)) for item in (*items, *response.output)}
        by_id: Mapping[str, bytes] = {item.id or "": encoded[id(item)] for item in (*made, *response.output)}
        output = [encoded[id(item)] for item in response.output]
        stored = StoredResponse(
            msgspec.Raw(msgspec.json.encode(response)),
            (*self._history, *(encoded[id(item)] for item in items)),
            output,
        )
        size = sum(len(item) + _OVERHEAD for item in (*stored.history, *output, bytes(stored.response)))
        self._store.put(self._caller, response.id, stored, size, by_id)

    @cached_property
    def _encoded(self) -> Mapping[str, bytes]:
        """The items of the conversation by their ids."""
        return {item.id or "": encoded for item, encoded in zip(self.earlier, self._history, strict=True)}

    def _find(self, id: str) -> StoredResponse:
        if (found := self._store.get(self._caller, id)) is None:
            field = "previous_response_id"
            problem = f"there is no response {id!r}, or it was deleted; send the whole conversation as `input`"
            raise ApiError(400, f"{field}: {problem}", code="previous_response_not_found", param=field)
        return found

    def _count_item(self, encoded: bytes, field: str) -> None:
        self._count += 1
        self._bytes += len(encoded)
        if self._count > MAX_STORED_ITEMS or self._bytes > MAX_STORED_ITEM_BYTES:
            problem = (
                f"the request takes more than {MAX_STORED_ITEMS:,} stored items, or more than"
                f" {MAX_STORED_ITEM_BYTES >> 20} MiB of them; send a shorter conversation as `input`"
            )
            raise invalid_field(f"{field}: {problem}", field)


def _without_logprobs(item: InputItem) -> InputItem:
    """Return an item without its log-probabilities, which no later request reads. The response itself has them."""
    if not (isinstance(item, Message) and isinstance(item.content, list)):
        return item
    parts = [
        msgspec.structs.replace(part, logprobs=[]) if isinstance(part, OutputText) and part.logprobs else part
        for part in item.content
    ]
    return msgspec.structs.replace(item, content=parts)


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
