"""The chat page as the server sends it: who gets it, its headers, and how it is switched off."""

import gzip
import re

import pytest

from support.http.http_server import MOCK, Server, served_process
from support.http.raw_http import asked

pytestmark = pytest.mark.slow

BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
TYPES = {"main.js": "text/javascript", "css/base.css": "text/css", "icon.svg": "image/svg+xml"}
GREETING = b"Ollama is running"


def test_a_browser_gets_the_page_and_ollamas_clients_their_greeting(server: Server) -> None:
    page, greeting = asked(server.url, "GET", "/", accept=BROWSER), asked(server.url, "GET", "/", accept="*/*")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert page.body.startswith(b"<!doctype html>")
    assert greeting.body == asked(server.url, "GET", "/").body == GREETING
    assert page.headers["vary"] == "accept, accept-encoding"
    assert greeting.headers["vary"] == "accept"


@pytest.mark.parametrize(("file", "media_type"), TYPES.items())
def test_a_file_has_its_type_and_is_sent_again_only_if_it_has_changed(
    server: Server, file: str, media_type: str
) -> None:
    first = asked(server.url, "GET", f"/page/{file}")
    assert first.headers["content-type"].split(";")[0] == media_type
    assert first.headers["cache-control"] == "no-cache"
    again = asked(server.url, "GET", f"/page/{file}", **{"if-none-match": f'"other", W/{first.headers["etag"]}'})
    assert (again.status, again.body) == (304, b"")
    other = asked(server.url, "GET", f"/page/{file}", **{"if-none-match": '"other"'})
    assert (other.status, other.body) == (200, first.body)


def test_a_file_is_compressed_for_clients_that_take_that(server: Server) -> None:
    plain = asked(server.url, "GET", "/page/vendor/marked.js", **{"accept-encoding": "br, gzip;q=0"})
    compressed = asked(server.url, "GET", "/page/vendor/marked.js", **{"accept-encoding": "gzip, br"})
    assert "content-encoding" not in plain.headers
    assert compressed.headers["content-encoding"] == "gzip"
    assert gzip.decompress(compressed.body) == plain.body
    assert len(compressed.body) < len(plain.body) / 2
    assert compressed.headers["etag"] != plain.headers["etag"]


def test_everything_from_elsewhere_is_forbidden(server: Server) -> None:
    headers = asked(server.url, "GET", "/", accept=BROWSER).headers
    policy = dict(rule.strip().split(" ", 1) for rule in headers["content-security-policy"].split(";"))
    assert policy["default-src"] == policy["base-uri"] == policy["form-action"] == policy["frame-ancestors"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
    assert policy["img-src"] == "'self' data: blob:"
    assert (policy["require-trusted-types-for"], policy["trusted-types"]) == ("'script'", "'none'")
    assert headers["x-content-type-options"] == "nosniff"


def test_only_files_of_the_page_are_sent(server: Server) -> None:
    for path in ("/page/nosuch.js", "/page/../endpoints.py", "/page/%2e%2e/endpoints.py", "/page//etc/passwd"):
        assert asked(server.url, "GET", path).status == 404


def test_a_page_of_another_origin_does_not_get_it(server: Server) -> None:
    assert asked(server.url, "GET", "/", accept=BROWSER, **{"sec-fetch-site": "cross-site"}).status == 403
    assert asked(server.url, "GET", "/", accept=BROWSER, host="evil.example").status == 403


def test_the_page_is_open_where_the_api_needs_a_key_and_absent_where_it_is_switched_off() -> None:
    with served_process("--worker", MOCK, "--api-key", "k-1") as locked:
        assert asked(locked.url, "GET", "/", accept=BROWSER).body.startswith(b"<!doctype html>")
        assert asked(locked.url, "GET", "/page/main.js").status == 200
        assert asked(locked.url, "GET", "/v1/models").status == 401
    with served_process("--worker", MOCK, "--no-page") as without:
        assert asked(without.url, "GET", "/", accept=BROWSER).body == GREETING
        assert asked(without.url, "GET", "/page/main.js").status == 404


def test_the_library_notices_name_each_library(server: Server) -> None:
    notices = asked(server.url, "GET", "/page/vendor/LICENSES.txt").body.decode()
    assert set(re.findall(r"\b\w+\.js\b", notices)) >= {"preact.js", "hooks.js", "htm.js", "marked.js"}
