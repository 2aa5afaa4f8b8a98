"""The page at /docs: it shows the OpenAPI document, and loads nothing from elsewhere."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import lmwire_http
from support.http.http_server import MOCK, Server, served
from support.http.raw_http import CHAT, asked, chat_body
from support.process.programs import program
from support.process.worker_process import SECONDS

FOLDER = Path(lmwire_http.__file__).parent / "operations/docs_page"
PARTS = {"/docs": "text/html", "/docs/docs.js": "text/javascript", "/docs/schema.js": "text/javascript"}
BROWSER = """
import { readFileSync } from "node:fs";
class Element {
  constructor(name) { this.name = name; this.children = []; this.listeners = {}; this.value = ""; }
  setAttribute(name, value) { this[name] = value; }
  append(...children) { this.children.push(...children); }
  addEventListener(kind, listener) { this.listeners[kind] = listener; }
  set textContent(text) { this.children = [text]; }
}
const byId = { key: new Element(), about: new Element(), operations: new Element() };
globalThis.document = { createElement: (name) => new Element(name), getElementById: (id) => byId[id] };
const sent = [];
globalThis.fetch = async (url, options) => {
  sent.push([url, options ?? null]);
  return options ? new Response("answered") : { json: async () => JSON.parse(readFileSync(0, "utf8")) };
};
byId.key.value = "k-1";
await import(process.argv[1]);
const open = (element) => {
  element.listeners?.toggle?.();
  delete element.listeners?.toggle;
  return element;
};
const everything = (element, depth = 0) => typeof element === "string" ? [element] : [
  element, ...(depth < 12 ? open(element).children.flatMap((child) => everything(child, depth + 1)) : [])];
const all = everything(byId.operations);
for (const button of all.filter((each) => each.name === "button")) await button.listeners.click();
await new Promise((resolve) => setTimeout(resolve));
const texts = all.filter((each) => typeof each === "string");
console.log(JSON.stringify({ about: byId.about.children, texts, sent }));
"""
"""As much of a browser as the page needs: it opens every block, and clicks every button."""


@pytest.fixture(scope="module")
def document(mock_server: Server) -> Any:
    return asked(mock_server.url, "GET", "/openapi.json").json


def rendered(document: Any) -> Any:
    """Return what the page shows of a document, and the requests that it sends."""
    command = [program("node"), "--input-type=module", "-e", BROWSER, str(FOLDER / "docs.js")]
    shown = subprocess.run(
        command, input=json.dumps(document), capture_output=True, text=True, timeout=SECONDS, check=True
    )
    return json.loads(shown.stdout)


@pytest.mark.parametrize(("path", "media_type"), PARTS.items())
def test_each_part_forbids_everything_from_elsewhere(mock_server: Server, path: str, media_type: str) -> None:
    answer = asked(mock_server.url, "GET", path)
    assert (answer.status, answer.headers["content-type"].split(";")[0]) == (200, media_type)
    policy = dict(rule.strip().split(" ", 1) for rule in answer.headers["content-security-policy"].split(";"))
    assert policy["default-src"] == policy["frame-ancestors"] == policy["base-uri"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
    assert answer.headers["x-content-type-options"] == "nosniff"


@pytest.mark.slow
def test_the_page_needs_nothing_that_the_policy_forbids(mock_server: Server) -> None:
    page = asked(mock_server.url, "GET", "/docs").body.decode()
    assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\bon\w+=|https?://", page)
    for name in re.findall(r'(?:src|href)="([^"]+)"', page):
        assert name == "data:," or asked(mock_server.url, "GET", f"/{name}").status == 200
    for script in ("docs.js", "schema.js"):
        assert not re.search(r"innerHTML|\beval\b|https?://|\.style\b", (FOLDER / script).read_text())


@pytest.mark.slow
def test_with_api_keys_the_page_is_open_and_its_requests_need_one() -> None:
    with served("--worker", MOCK, "--api-key", "k-1") as server:
        assert asked(server.url, "GET", "/docs").status == 200
        assert asked(server.url, "POST", CHAT, chat_body("x")).status == 401
        assert asked(server.url, "POST", CHAT, chat_body("x"), x_api_key="k-1").status == 200


def test_the_docs_pages_own_requests_are_served(mock_server: Server) -> None:
    own = mock_server.url
    host = own.removeprefix("http://")
    secure = f"https://{host}"
    for headers in ({"origin": own}, {"origin": secure, "sec_fetch_site": "same-origin"}):
        assert asked(own, "POST", CHAT, chat_body("x"), host=host, **headers).status == 200
    for headers in ({"origin": f"{own}1"}, {"origin": secure}, {"origin": own, "host": "evil.example"}):
        assert asked(own, "POST", CHAT, chat_body("x"), **{"host": host, **headers}).status == 403


@pytest.mark.slow
def test_every_operation_and_field_is_shown(document: Any) -> None:
    shown = rendered(document)
    assert document["info"]["version"] in shown["about"][0]
    assert set(document["paths"]) <= set(shown["texts"])
    assert set(document["components"]["schemas"]["ChatRequest"]["properties"]) <= set(shown["texts"])


@pytest.mark.slow
def test_a_request_of_the_page_has_the_key_and_an_example_that_is_valid(document: Any) -> None:
    sent = {(options["method"], url): options for url, options in rendered(document)["sent"] if options}
    assert sent["GET", "v1/models"]["headers"] == {"x-api-key": "k-1"}
    for path, methods in document["paths"].items():
        content = methods.get("post", {}).get("requestBody", {}).get("content", {})
        if "application/json" in content:
            body = json.loads(sent["POST", path.removeprefix("/")]["body"])
            schema = {**content["application/json"]["schema"], "components": document["components"]}
            jsonschema.validate(body, schema)
