"""Stored responses belong to the API key that they were made with: no other key finds, uses or displaces them."""

from collections.abc import Iterator
from typing import Any

import pytest

from support.http.http_server import MOCK, Server, served
from support.http.raw_http import Answer, asked

ADA, ALAN = "k-ada", "k-alan"
CREATE = "/v1/responses"
UNKNOWN = "resp_unknown"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    keys = tmp_path_factory.mktemp("keys") / "keys"
    keys.write_text(f"{ADA}\n{ALAN}\n")
    with served("--api-key-file", str(keys), "--worker", MOCK, "--stored", "8") as server:
        yield server


def create(server: Server, key: str, input: Any, **fields: Any) -> Answer:
    body = {"model": "mock", "input": input, **fields}
    return asked(server.url, "POST", CREATE, body, authorization=f"Bearer {key}")


def ask(server: Server, key: str, method: str, path: str) -> Answer:
    return asked(server.url, method, f"{CREATE}/{path}", authorization=f"Bearer {key}")


def stored(server: Server, key: str, input: Any, **fields: Any) -> Any:
    answer = create(server, key, input, **fields)
    assert answer.status == 200, answer.body
    return answer.json


def said(id: str, text: str) -> dict[str, Any]:
    return {"type": "message", "id": id, "role": "user", "content": text}


def refused_alike(foreign: Answer, unknown: Answer, id: str) -> bool:
    """Return whether both answers are the same, but for the ids that the requests name."""
    mine, other = foreign.json["error"], unknown.json["error"]
    alike = foreign.status == unknown.status and mine.keys() == other.keys() and mine["code"] == other["code"]
    return alike and mine["message"].replace(id, UNKNOWN) == other["message"]


@pytest.mark.parametrize(("method", "rest"), [("GET", ""), ("DELETE", ""), ("GET", "/input_items")])
def test_another_key_neither_reads_nor_deletes_a_response(server: Server, method: str, rest: str) -> None:
    id = stored(server, ADA, "my secret")["id"]
    foreign = ask(server, ALAN, method, id + rest)
    assert foreign.status == 404
    assert refused_alike(foreign, ask(server, ALAN, method, UNKNOWN + rest), id)
    assert ask(server, ADA, method, id + rest).status == 200


def test_another_key_does_not_continue_a_response(server: Server) -> None:
    id = stored(server, ADA, "my secret")["id"]
    foreign = create(server, ALAN, "go on", previous_response_id=id)
    assert refused_alike(foreign, create(server, ALAN, "go on", previous_response_id=UNKNOWN), id)
    assert stored(server, ADA, "go on", previous_response_id=id)["previous_response_id"] == id


def test_another_key_does_not_refer_to_an_item(server: Server) -> None:
    response = stored(server, ADA, "my secret")
    listed = ask(server, ADA, "GET", f"{response['id']}/input_items").json["data"]
    for item in (*listed, *response["output"]):
        reference = [{"type": "item_reference", "id": item["id"]}]
        foreign = create(server, ALAN, reference)
        unknown = create(server, ALAN, [{"type": "item_reference", "id": UNKNOWN}])
        assert refused_alike(foreign, unknown, item["id"])
        assert create(server, ADA, reference).status == 200


def test_an_item_with_an_id_of_its_client_is_found_only_in_its_conversation(server: Server) -> None:
    reference = [{"type": "item_reference", "id": "msg_1"}]
    stored(server, ALAN, [said("msg_1", "Alan's words")])
    response = stored(server, ADA, [said("msg_1", "Ada's words")])
    for key in (ADA, ALAN):
        assert create(server, key, reference).json["error"]["param"] == "input[0].id"
    continued = stored(server, ADA, reference, previous_response_id=response["id"])
    listed = ask(server, ADA, "GET", f"{continued['id']}/input_items?order=asc").json["data"]
    texts = [item["content"][0]["text"] for item in listed if item["role"] == "user"]
    assert texts == ["Ada's words", "Ada's words"]


def test_an_item_that_a_client_sends_with_an_id_of_the_server_does_not_replace_it(server: Server) -> None:
    original = stored(server, ADA, "hello")["output"][0]
    stored(server, ADA, [{**original, "content": "something else"}, said("msg_2", "go on")])
    response = stored(server, ADA, [{"type": "item_reference", "id": original["id"]}])
    [item] = ask(server, ADA, "GET", f"{response['id']}/input_items").json["data"]
    assert item == original


def test_a_deleted_response_takes_its_items_along(server: Server) -> None:
    response = stored(server, ADA, "hello")
    assert ask(server, ADA, "DELETE", response["id"]).status == 200
    assert create(server, ADA, [{"type": "item_reference", "id": response["output"][0]["id"]}]).status == 400


def test_one_key_does_not_displace_the_responses_of_another(server: Server) -> None:
    ids = [stored(server, ADA, "hello")["id"] for _ in range(4)]
    for _ in range(12):
        stored(server, ALAN, "flood")
    assert [ask(server, ADA, "GET", id).status for id in ids] == [200] * 4
