"""The stored items that one request takes: its own conversation's, and a bounded number of bytes."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from lmwire_http.errors import ApiError
from lmwire_http.http.response_store import ResponseStore
from lmwire_http.inference.answers import TokenLogprob
from lmwire_http.openai.responses import store as store_module
from lmwire_http.openai.responses.endpoints import start_generation
from lmwire_http.openai.responses.items import InputItem, ItemReference, Message, OutputText, assign_ids
from lmwire_http.openai.responses.request import ResponseRequest
from lmwire_http.openai.responses.response import Response, new_response
from lmwire_http.openai.responses.store import StoredItems


def message(text: str, id: str | None = None) -> Message:
    return Message(id=id, role="user", content=text)


def keep(store: ResponseStore, items: list[InputItem], previous: str | None = None) -> Response:
    response = new_response(ResponseRequest(model="m", input="hello"), [], None)
    StoredItems(store, None, previous).keep(response, items, assign_ids(items))
    return response


def test_a_conversation_is_decoded_as_it_was_stored() -> None:
    store = ResponseStore(9)
    first, second = message("one", "msg_1"), message("two")
    response = keep(store, [second], keep(store, [first]).id)
    assert StoredItems(store, None, response.id).earlier == [first, second]


def test_log_probabilities_are_not_stored_with_the_conversation() -> None:
    store = ResponseStore(9)
    scored = OutputText(text="one", logprobs=[TokenLogprob(token="one", logprob=-1.0, bytes=[1], top_logprobs=[])])
    response = keep(store, [Message(role="assistant", content=[scored])])
    [item] = StoredItems(store, None, response.id).earlier
    assert isinstance(item, Message) and item.content == [OutputText(text="one", logprobs=[])]
    assert scored.logprobs


def test_references_take_no_more_bytes_than_a_worker_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    """A request of some kilobytes that refers to a long item again and again would take all memory."""
    monkeypatch.setattr(store_module, "MAX_STORED_ITEM_BYTES", 1000)
    store = ResponseStore(9)
    item = message("x" * 300)
    keep(store, [item])
    taken, reference = StoredItems(store, None, None), ItemReference(id=item.id)
    taken.resolve(reference, 0)
    taken.resolve(reference, 1)
    with pytest.raises(ApiError, match="shorter conversation") as refused:
        taken.resolve(reference, 2)
    assert refused.value.param == "input[2].id"


def test_a_conversation_has_a_limit_of_stored_items(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "MAX_STORED_ITEMS", 3)
    store = ResponseStore(9)
    response = keep(store, [message("a"), message("b"), message("c")])
    assert len(StoredItems(store, None, response.id).earlier) == 3
    response = keep(store, [message("d")], response.id)
    with pytest.raises(ApiError, match="stored items") as refused:
        StoredItems(store, None, response.id)
    assert refused.value.param == "previous_response_id"


def test_many_small_items_count_with_the_memory_that_they_take() -> None:
    store = ResponseStore(9, max_bytes=20_000)
    response = keep(store, [message("") for _ in range(100)])
    assert store.get(None, response.id) is None


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fields", "is_large"),
    [
        ({"input": "hello"}, False),
        ({"input": [{"role": "user", "content": "hello"}]}, False),
        ({"input": "hello", "previous_response_id": "resp_1"}, True),
        ({"input": [{"type": "item_reference", "id": "msg_1"}]}, True),
        ({"input": [{"id": "msg_1"}]}, True),
    ],
)
def test_stored_items_are_decoded_beside_the_loop(fields: dict[str, Any], is_large: bool) -> None:
    """A body of some bytes may take megabytes of them."""
    called: list[bool] = []

    async def beside_loop(*call: object) -> None:
        called.append(context.is_large)

    context: Any = SimpleNamespace(is_large=False, beside_loop=beside_loop)
    asyncio.run(start_generation(context, ResponseRequest(model="m", **fields)))
    assert called == [is_large]
