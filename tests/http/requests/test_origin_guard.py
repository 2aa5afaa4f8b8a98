"""Web pages cannot use a server that asks for no key: not by a name that resolves to it, nor from another origin."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lmwire_http.app import ENDPOINTS
from lmwire_http.http.context import make_app_state
from lmwire_http.http.origin_guard import OriginGuard
from lmwire_http.settings import Settings
from support.http.http_server import MOCK, Server, served, served_process
from support.http.raw_http import CHAT, Answer, RawClient, asked, chat_body, request

EVIL = "http://evil.example"
FRIEND = "http://localhost:3000"
FORMS = [
    "text/plain",
    "text/plain;charset=UTF-8",
    "application/x-www-form-urlencoded",
    "multipart/form-data; boundary=x",
]
PATHS = sorted({endpoint.path.replace("{model:path}", "mock").replace("{id}", "resp_1") for endpoint in ENDPOINTS})


@pytest.fixture(scope="module")
def named_server() -> Iterator[Server]:
    """One with names of its own, which lets the pages of one origin ask."""
    with served_process(
        "--worker", MOCK, "--host-name", "studio.local", "--host-name", "Box", "--cors", FRIEND
    ) as server:
        yield server


@pytest.fixture(scope="module")
def any_origin_server() -> Iterator[Server]:
    with served_process("--worker", MOCK, "--cors", "*") as server:
        yield server


def get(server: Server, path: str = "/v1/models", **headers: str) -> Answer:
    return asked(server.url, "GET", path, **headers)


def refused(answer: Answer, code: str) -> str:
    assert answer.status == 403
    assert answer.json["error"]["code"] == code
    assert "access-control-allow-origin" not in answer.headers
    return answer.json["error"]["message"]


# A name that resolves to this machine (DNS rebinding).


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:8080",
        "127.0.0.1.evil.example",
        "localhost.evil.example",
        "evillocalhost",
        "studio.local",
        "127.0.0.1@evil.example",
        "127.1",
        "0x7f000001",
        "[evil.example]:80",
        "::1",
        "localhost:80:80",
        "",
        " ",
        "\xff",
    ],
)
def test_a_request_for_another_name_is_refused(mock_server: Server, host: str) -> None:
    assert "--host-name NAME" in refused(get(mock_server, host=host), "host_not_allowed")


@pytest.mark.parametrize("path", PATHS)
def test_a_request_for_another_name_is_refused_at_every_path(mock_server: Server, path: str) -> None:
    for method in ("GET", "POST", "DELETE", "OPTIONS"):
        answer = asked(mock_server.url, method, path, host="evil.example")
        assert answer.status == 403, (method, path)


def test_an_error_for_anthropics_clients_has_anthropics_format(mock_server: Server) -> None:
    answer = asked(mock_server.url, "POST", "/v1/messages", {}, host="evil.example")
    assert (answer.status, answer.json["error"]["type"]) == (403, "permission_error")
    assert answer.json["error"]["details"]["error_code"] == "host_not_allowed"


@pytest.mark.parametrize(
    "host",
    [
        "localhost",
        "LOCALHOST:8080",
        "localhost.",
        "lmwire.localhost:1",
        "127.0.0.1",
        "127.8.9.1:8080",
        "192.168.1.7",
        "0.0.0.0:80",
        "[::1]",
        "[::1]:8080",
        "[fe80::1%25eth0]:8080",
    ],
)
def test_a_request_for_an_address_or_localhost_is_served(mock_server: Server, host: str) -> None:
    assert get(mock_server, host=host).status == 200


@pytest.mark.slow
@pytest.mark.parametrize("host", ["studio.local", "STUDIO.local:8080", "studio.local.", "box"])
def test_a_request_for_an_allowed_host_name_is_served(named_server: Server, host: str) -> None:
    assert get(named_server, host=host).status == 200
    refused(get(named_server, host=f"x.{host}"), "host_not_allowed")


@pytest.mark.parametrize(("host", "status"), [("studio.local:8080", 200), ("evil.example", 403)])
def test_the_name_of_the_host_option_is_an_allowed_host_name(host: str, status: int) -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})

    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        return {"type": "http.request"}

    guard = OriginGuard(app, make_app_state(Settings(host="Studio.local")))
    scope = {"type": "http", "http_version": "1.1", "method": "GET", "path": "/health", "query_string": b""}
    asyncio.run(guard({**scope, "headers": [(b"host", host.encode())]}, receive, send))
    assert sent[0]["status"] == status


def test_a_refused_request_is_answered_before_its_body_comes(mock_server: Server) -> None:
    with RawClient(mock_server.url) as client:
        client.send(request("POST", CHAT, b"{", content_length="1000", host="evil.example"))
        refused(client.answer(), "host_not_allowed")


def test_a_refused_request_is_logged_and_counted(mock_server: Server) -> None:
    before = mock_server.figure("lmwire_http_requests_total", path="", status="403")
    get(mock_server, host="evil.example", x_request_id="rebound")
    assert "status=403" in mock_server.wait_for_line("request_id=rebound")
    assert mock_server.figure("lmwire_http_requests_total", path="", status="403") == before + 1


@pytest.mark.slow
def test_where_a_key_is_asked_for_the_key_decides() -> None:
    """A page does not know it, and clients come by names that only their network knows."""
    with served("--worker", MOCK, "--api-key", "k-ada") as server:
        assert get(server, host="evil.example").status == 401
        assert get(server, host="evil.example", authorization="Bearer k-ada").status == 200


@pytest.mark.slow
def test_over_a_unix_socket_any_name_will_do(tmp_path: Path) -> None:
    with served_process("--worker", MOCK, "--uds", str(tmp_path / "socket")) as server:
        assert get(server, host="anything").status == 200
        refused(get(server, origin=EVIL), "origin_not_allowed")


@pytest.mark.parametrize(
    "hosts", [b"", b"host: localhost\r\nhost: localhost\r\n", b"Host: localhost\r\nhost: evil\r\n"]
)
def test_a_request_must_have_exactly_one_host_header(mock_server: Server, hosts: bytes) -> None:
    with RawClient(mock_server.url) as client:
        client.send(b"GET /v1/models HTTP/1.1\r\n" + hosts + b"\r\n")
        answer = client.answer()
    assert (answer.status, answer.json["error"]["code"]) == (400, "invalid_host")


def test_http_1_0_needs_no_host_header(mock_server: Server) -> None:
    for hosts, status in ((b"", b" 200 "), (b"host: evil.example\r\n", b" 403 ")):
        with RawClient(mock_server.url) as client:
            client.send(b"GET /v1/models HTTP/1.0\r\n" + hosts + b"\r\n")
            assert status in client.read_until(b"\r\n")


# Pages of other origins.


@pytest.mark.parametrize("origin", [EVIL, FRIEND, "null", "https://localhost", "http://127.0.0.1:1", ""])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_page_of_another_origin_is_refused(mock_server: Server, method: str, origin: str) -> None:
    """Requests by `fetch`, `EventSource` and `<script crossorigin>` carry the page's origin."""
    path, body = ("/v1/models", None) if method == "GET" else (CHAT, chat_body("x"))
    answer = asked(mock_server.url, method, path, body, origin=origin, sec_fetch_site="cross-site")
    assert f"--cors {origin}" in refused(answer, "origin_not_allowed")


@pytest.mark.parametrize(
    ("mode", "destination"),
    [("no-cors", "image"), ("no-cors", "script"), ("navigate", "document"), ("navigate", "iframe")],
)
def test_a_request_that_another_site_embeds_or_links_is_refused(
    mock_server: Server, mode: str, destination: str
) -> None:
    """Such requests carry no origin, but they name their mode and destination."""
    headers = {"sec_fetch_site": "cross-site", "sec_fetch_mode": mode, "sec_fetch_dest": destination}
    assert "--cors ORIGIN" in refused(get(mock_server, **headers), "origin_not_allowed")


@pytest.mark.parametrize("site", ["none", "same-origin", "same-site"])
def test_an_address_typed_into_a_browser_is_served(mock_server: Server, site: str) -> None:
    assert get(mock_server, "/metrics", sec_fetch_site=site, sec_fetch_mode="navigate").status == 200


def test_a_websocket_of_another_origin_is_refused(mock_server: Server) -> None:
    headers = {"connection": "Upgrade", "upgrade": "websocket", "sec_websocket_key": "x", "sec_websocket_version": "13"}
    refused(get(mock_server, "/health", origin=EVIL, **headers), "origin_not_allowed")


def test_a_preflight_of_another_origin_is_refused(mock_server: Server) -> None:
    refused(
        asked(mock_server.url, "OPTIONS", CHAT, origin=EVIL, access_control_request_method="POST"), "origin_not_allowed"
    )


@pytest.mark.slow
def test_two_origins_are_not_one_that_is_allowed(named_server: Server) -> None:
    with RawClient(named_server.url) as client:
        head = f"GET /v1/models HTTP/1.1\r\nhost: localhost\r\norigin: {FRIEND}\r\norigin: {EVIL}\r\n\r\n"
        client.send(head.encode())
        assert client.answer().status == 403


@pytest.mark.parametrize("media_type", FORMS)
def test_a_form_on_a_page_starts_no_generation(mock_server: Server, media_type: str) -> None:
    """Neither from another origin, nor in a browser that sends no origin: no form can send JSON as JSON."""
    before = mock_server.figure("lmwire_tokens_total")
    for headers in ({"origin": EVIL}, {"origin": "null"}, {"sec_fetch_site": "cross-site"}):
        assert asked(mock_server.url, "POST", CHAT, chat_body("x"), content_type=media_type, **headers).status == 403
    answer = asked(mock_server.url, "POST", CHAT, chat_body("x"), content_type=media_type)
    assert (answer.status, answer.json["error"]["code"]) == (415, "unsupported_media_type")
    assert "content-type: application/json" in answer.json["error"]["message"]
    assert mock_server.figure("lmwire_tokens_total") == before


@pytest.mark.parametrize("media_type", ["application/json", "Application/JSON ; charset=utf-8", "application/ld+json"])
def test_json_is_taken_as_json(mock_server: Server, media_type: str) -> None:
    assert asked(mock_server.url, "POST", CHAT, chat_body("x"), content_type=media_type).status == 200


# Pages that may ask.


@pytest.mark.slow
def test_a_plain_get_of_a_page_that_may_ask_is_answered(named_server: Server) -> None:
    answer = get(named_server, origin=FRIEND, sec_fetch_site="cross-site")
    assert (answer.status, answer.headers["access-control-allow-origin"]) == (200, FRIEND)
    assert "Origin" in answer.headers["vary"]
    assert "access-control-allow-credentials" not in answer.headers
    assert answer.json["data"] == []


@pytest.mark.slow
def test_a_cached_answer_is_not_given_to_another_page(named_server: Server) -> None:
    assert "Origin" in get(named_server).headers["vary"]


@pytest.mark.slow
def test_an_allowed_page_may_post_and_read_the_stream(named_server: Server) -> None:
    answer = asked(named_server.url, "POST", CHAT, chat_body("one two", stream=True), origin=FRIEND)
    assert (answer.status, answer.headers["access-control-allow-origin"]) == (200, FRIEND)
    assert answer.body.endswith(b"data: [DONE]\n\n")


@pytest.mark.slow
def test_an_allowed_page_may_delete_a_response(named_server: Server) -> None:
    asking = {"origin": FRIEND, "access_control_request_method": "DELETE"}
    answer = asked(named_server.url, "OPTIONS", "/v1/responses/resp_1", **asking)
    assert (answer.status, "DELETE" in answer.headers["access-control-allow-methods"]) == (200, True)


@pytest.mark.slow
def test_an_allowed_page_may_not_use_another_host_name(named_server: Server) -> None:
    refused(get(named_server, host="evil.example", origin=FRIEND), "host_not_allowed")


@pytest.mark.slow
@pytest.mark.parametrize("origin", [EVIL, "null"])
def test_with_all_origins_allowed_every_page_reads_the_answer(any_origin_server: Server, origin: str) -> None:
    for answer in (
        get(any_origin_server, origin=origin, sec_fetch_site="cross-site"),
        asked(any_origin_server.url, "POST", CHAT, chat_body("x"), origin=origin, content_type="application/json"),
    ):
        assert (answer.status, answer.headers["access-control-allow-origin"]) == (200, "*")
        assert "access-control-allow-credentials" not in answer.headers
    asking = {
        "origin": origin,
        "access_control_request_method": "POST",
        "access_control_request_headers": "content-type",
    }
    preflight = asked(any_origin_server.url, "OPTIONS", CHAT, **asking)
    assert (preflight.status, preflight.headers["access-control-allow-origin"]) == (200, "*")
    assert preflight.headers["access-control-allow-headers"] == "content-type"


@pytest.mark.slow
@pytest.mark.parametrize(("origin", "status", "allowed"), [(FRIEND, 200, "true"), (EVIL, 403, None)])
def test_a_browser_may_send_requests_of_a_public_page_to_this_machine(
    named_server: Server, origin: str, status: int, allowed: str | None
) -> None:
    """https://wicg.github.io/private-network-access/: without the header, a browser blocks the page's requests."""
    asking = {"access_control_request_method": "POST", "access_control_request_private_network": "true"}
    preflight = asked(named_server.url, "OPTIONS", CHAT, origin=origin, **asking)
    assert preflight.status == status
    assert preflight.headers.get("access-control-allow-private-network") == allowed


@pytest.mark.slow
def test_with_all_origins_allowed_another_host_name_is_still_refused(any_origin_server: Server) -> None:
    refused(get(any_origin_server, host="evil.example"), "host_not_allowed")


@pytest.mark.slow
def test_allowing_all_origins_logs_a_warning_at_the_start(any_origin_server: Server, named_server: Server) -> None:
    assert "warning" in any_origin_server.wait_for_line(r"--cors '\*' without an API key")
    assert not any(" warning " in line for line in named_server.log)


def test_a_stream_is_passed_on_token_by_token(gated_server: Server) -> None:
    """The guard keeps nothing back: the first token is read while the answer goes on."""
    with RawClient(gated_server.url) as client:
        client.chat("say one and wait", stream=True)
        client.read_until(b'"content":"One"')
