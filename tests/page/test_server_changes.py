"""Changes of the server that the chat page notices: a restart, an API key, and models that are loaded."""

import json
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Request, Route, expect

from support.http.http_server import MOCK, Server, served_process
from support.http.ports import unused_port
from support.page.chat_page import ChatPage

from .conftest import SCRIPT

pytestmark = pytest.mark.nightly

WORKER = ("--worker", f"{MOCK} --scenario {SCRIPT}")

ASK_FOR_THE_MODELS = "document.dispatchEvent(new Event('visibilitychange'))"
"""Reports to the page that the user has come back to the tab."""


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """Serve two models and demand a key."""
    with served_process("tests/one", "tests/two", *WORKER, "--api-key", "k-1") as server:
        yield server


def unlock(page: ChatPage, key: str, *, remember: bool = False) -> None:
    """Enter a key into the page's question."""
    page.tab.locator("[data-input=key]").fill(key)
    if remember:
        page.tab.get_by_role("checkbox", name="Remember").check()
    page.button("Continue").click()


def test_the_page_asks_for_a_key_and_forgets_it_with_the_tab(context: BrowserContext, server: Server) -> None:
    page = ChatPage(context, server.url)
    unlock(page, "wrong")
    expect(page.tab.get_by_role("alert")).to_contain_text("The server refuses this key.")
    expect(page.tab.locator("[data-input=key]")).to_have_value("")
    unlock(page, "k-1")
    expect(page.text(page.answered("alpha"))).to_have_text("alpha")
    page.tab.reload()
    expect(page.button("Model: one")).to_be_visible()
    other = ChatPage(context, server.url)
    expect(other.tab.locator("[data-input=key]")).to_be_visible()
    assert all("401" in error for error in page.errors + other.errors)


def test_a_key_is_kept_in_the_browser_if_the_user_says_so(context: BrowserContext, server: Server) -> None:
    page = ChatPage(context, server.url)
    unlock(page, "k-1", remember=True)
    expect(page.button("Model: one")).to_be_visible()
    other = ChatPage(context, server.url)
    expect(other.button("Model: one")).to_be_visible()
    other.assert_clean()


def fulfil(route: Route, answer: Any) -> None:
    """Answer a request in the server's place."""
    route.fulfill(json=answer)


def test_a_server_without_a_model_says_how_to_get_one(context: BrowserContext, server: Server) -> None:
    empty = {"models": {"data": [], "models": []}, "mcp/tools": {"servers": []}, "models/download": {"allowed": False}}
    for path, answer in empty.items():
        context.route(f"**/v1/{path}", partial(fulfil, answer=answer))
    page = ChatPage(context, server.url)
    advice = "Start it with one: lmwire serve builtin:tiny"
    expect(page.tab.get_by_role("region", name="Messages")).to_contain_text(advice)
    page.ask("alpha")
    expect(page.tab.locator("[data-banner=notice]")).to_contain_text(advice)
    expect(page.composer).to_have_value("alpha")
    page.assert_clean()


def test_a_model_is_chosen_loaded_and_unloaded(context: BrowserContext, server: Server) -> None:
    page = ChatPage(context, server.url)
    unlock(page, "k-1")
    picker = page.tab.locator("[data-action=models]")
    picker.click()
    row = page.tab.locator("[data-model='tests/two']")
    expect(row).to_have_attribute("data-state", "unloaded")
    row.locator(".model-name").click()
    expect(picker).to_contain_text("two")
    picker.click()
    expect(row).to_have_attribute("data-state", "loaded")
    expect(row).to_contain_text("1M context")
    row.get_by_role("button", name="Unload").click()
    expect(row).to_have_attribute("data-state", "unloaded")
    page.tab.keyboard.press("Escape")
    expect(page.answered("alpha").locator(".answer-name")).to_have_text("two")


def test_the_models_are_listed_as_the_server_names_them_and_a_toy_is_called_one(context: BrowserContext) -> None:
    with served_process("tests/zeta", "builtin:tiny", *WORKER) as server:
        page = ChatPage(context, server.url)
        expect(page.button("Model: zeta")).to_be_visible()
        page.tab.locator("[data-action=models]").click()
        expect(page.tab.locator("[data-model]")).to_contain_text(["tests/zeta", "toy model"])
        page.tab.locator("[data-model='builtin:tiny'] .model-name").click()
        expect(page.tab.locator("[data-action=models]")).to_contain_text("toy")
        expect(page.tab.locator("[data-toy]")).to_contain_text("its answers have no sense")
        page.tab.evaluate("localStorage.clear()")
        page.tab.reload()
        expect(page.button("Model: zeta")).to_be_visible()  # although the other one is in memory
        page.assert_clean()


def test_an_older_list_of_models_does_not_replace_a_newer_one(context: BrowserContext, server: Server) -> None:
    page = ChatPage(context, server.url)
    unlock(page, "k-1")
    expect(page.button("Model: one")).to_be_visible()
    requests: list[Route] = []

    def answer_the_second(route: Route) -> None:
        requests.append(route)
        if len(requests) == 2:
            route.fulfill(json=models_named("newer"))

    context.route("**/v1/models", answer_the_second)
    for _ in range(2):
        with page.tab.expect_request("**/v1/models"):
            page.tab.evaluate(ASK_FOR_THE_MODELS)
    expect(page.button("Model: newer")).to_be_visible()
    with page.tab.expect_event("requestfinished", lambda request: request == requests[0].request):
        requests[0].fulfill(json=models_named("older"))
    page.button("Settings").click()
    page.button("Close").click()
    expect(page.button("Model: newer")).to_be_visible()


def models_named(name: str) -> dict[str, Any]:
    """Return the server's list of models with one that is not loaded."""
    return {"data": [{"id": name, "state": "unloaded"}], "models": [{"slug": name}]}


def test_each_load_is_watched(context: BrowserContext, server: Server) -> None:
    page = ChatPage(context, server.url)
    unlock(page, "k-1")
    context.route("**/v1/models", lambda route: route.fulfill(json=models_named("tests/one")))
    page.tab.evaluate(ASK_FOR_THE_MODELS)
    page.answered("alpha")  # this loads the model, too
    context.route("**/v1/models/load", lambda _: None)  # never answered
    page.tab.locator("[data-action=models]").click()
    with page.tab.expect_request("**/v1/models"):
        page.button("Load").click()


def test_a_key_is_not_lost_when_the_server_is_well_again(context: BrowserContext, server: Server) -> None:
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    context.route("**/v1/models", lambda route: route.abort())
    context.route("**/health", hold)
    with context.expect_event("request", is_about_health):
        page = ChatPage(context, server.url)
    expect(page.tab.locator("[data-banner=offline]")).to_be_visible()
    context.unroute("**/v1/models")
    page.tab.evaluate(ASK_FOR_THE_MODELS)
    page.tab.locator("[data-input=key]").fill("k-1")
    with page.tab.expect_event("requestfinished", is_about_health):
        held.pop().continue_()
    page.button("Continue").click()
    expect(page.button("Model: one")).to_be_visible()


def is_about_health(request: Request) -> bool:
    """Return whether the page asks with this request whether the server is well."""
    return request.url.endswith("/health")


def test_an_answer_shows_how_far_its_model_is_loaded(context: BrowserContext, tmp_path: Path) -> None:
    step = {"stage": "read", "current": 40, "total": 100, "unit": "bytes", "delay_ms": 500}
    script = tmp_path / "slow.json"
    script.write_text(json.dumps({"rules": [{"match": {"cmd": "load"}, "reply": {"progress": [step] * 1200}}]}))
    with served_process("tests/slow", "--worker", f"{MOCK} --scenario {script}") as server:
        page = ChatPage(context, server.url)
        page.ask("alpha")
        expect(page.answer("running").locator(".waiting")).to_have_text(re.compile("Loading the model 40 %"))
        page.tab.locator("[data-action=models]").click()
        expect(page.tab.locator("[data-model] progress")).to_have_attribute("value", "0.4")
        page.tab.keyboard.press("Escape")
        page.button("Stop the answer").click()
        page.answer("stopped")
        page.assert_clean()


def test_a_restart_of_the_server_is_noticed_and_the_page_goes_on(context: BrowserContext) -> None:
    port = str(unused_port())
    with served_process("tests/one", *WORKER, "--port", port) as first:
        page = ChatPage(context, first.url)
        page.answered("alpha")
        page.ask("say one and wait")
        expect(page.text()).to_have_text("One two")
        first.process.kill()
        first.process.wait()
    offline = page.tab.locator("[data-banner=offline]")
    expect(offline).to_contain_text("start it again with lmwire serve")
    answer = page.answer("failed")
    expect(answer).to_contain_text("The connection to the server was lost.")
    expect(page.text(answer)).to_have_text("One two")
    with served_process("tests/one", *WORKER, "--port", port):
        expect(offline).to_be_hidden()
        expect(page.text(page.answered("beta"))).to_have_text("beta")
    assert page.foreign == []
