"""Messages that are written before the chat page has all that it needs."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import BrowserContext, Route, expect

from support.http.http_server import Server
from support.page.chat_page import ChatPage, body_of
from support.page.holding import HOLD_FILES, results_held

pytestmark = pytest.mark.nightly


def test_a_message_is_written_only_when_there_is_a_place_for_it(context: BrowserContext, server: Server) -> None:
    context.add_init_script(results_held("IDBFactory", "open"))
    tab = context.new_page()
    tab.goto(server.url)
    tab.evaluate("reached")
    composer = tab.get_by_role("textbox", name="Message", exact=True)
    expect(composer).to_have_count(0)
    tab.evaluate("release()")
    composer.fill("alpha")
    composer.press("Enter")
    expect(tab.locator("[data-role=assistant][data-state=done] > .markdown")).to_have_text("alpha")


def test_a_message_waits_for_the_list_of_models(page: ChatPage, context: BrowserContext) -> None:
    with responses_held(context, "**/v1/models"):
        page.tab.reload()
        page.ask("alpha")
        expect(page.composer).not_to_be_editable()
    expect(page.text(page.answer("done"))).to_have_text("alpha")
    expect(page.composer).to_have_value("")
    expect(page.questions()).to_have_count(1)
    expect(page.tab.locator("[data-banner=notice]")).to_have_count(0)


def test_a_message_waits_for_its_files(page: ChatPage) -> None:
    add_a_file_that_waits(page)
    expect(page.tab.locator(".composer")).to_contain_text("Reading files…")
    page.ask("alpha")
    expect(page.tab.locator(".composer")).to_contain_text("The message waits for its files…")
    expect(page.questions()).to_have_count(0)
    with page.tab.expect_request("**/chat/completions") as sent:
        page.tab.evaluate("release()")
    [message] = body_of(sent.value)["messages"]
    assert [part["text"] for part in message["content"]] == ["one.txt:\n\n1\n", "alpha"]
    page.answer("done")


def test_a_message_is_kept_if_one_of_its_files_cannot_be_read(page: ChatPage) -> None:
    add_a_file_that_waits(page)
    page.ask("alpha")
    expect(page.composer).not_to_be_editable()
    page.tab.evaluate("refuse(new Error('one.txt cannot be read.'))")
    expect(page.tab.locator("[data-banner=notice]")).to_contain_text("one.txt cannot be read.")
    expect(page.composer).to_be_editable()
    expect(page.composer).to_have_value("alpha")
    expect(page.questions()).to_have_count(0)
    page.composer.press("Enter")
    expect(page.text(page.answer("done"))).to_have_text("alpha")


def test_a_message_that_waits_is_kept_if_another_conversation_is_opened(page: ChatPage) -> None:
    page.answered("alpha")
    add_a_file_that_waits(page)
    page.ask("beta")
    expect(page.composer).not_to_be_editable()
    page.button("New chat").click()
    page.tab.evaluate("release()")
    expect(page.composer).to_be_editable()
    expect(page.composer).to_have_value("beta")
    expect(page.tab.locator(".composer .attachment")).to_have_text("one.txt")
    expect(page.questions()).to_have_count(0)


def add_a_file_that_waits(page: ChatPage) -> None:
    """Add a text that is not read before the test says so."""
    page.tab.evaluate(HOLD_FILES)
    page.tab.locator("[data-input=files]").set_input_files(
        {"name": "one.txt", "mimeType": "text/plain", "buffer": b"1"}
    )


def test_an_answer_begins_before_the_browser_has_stored_the_message(context: BrowserContext, server: Server) -> None:
    context.add_init_script("Object.defineProperty(IDBTransaction.prototype, 'oncomplete', { set: () => {} });")
    page = ChatPage(context, server.url)
    expect(page.text(page.answered("alpha"))).to_have_text("alpha")


def test_effects_of_what_is_shown_do_not_come_later(page: ChatPage) -> None:
    page.answered("alpha")
    focused = page.tab.evaluate(
        """async () => {
            document.querySelector("[data-action=settings]").focus();
            document.querySelector(".new-chat").click();
            await new Promise(queueMicrotask); // the page is rendered
            return document.activeElement.id;
        }"""
    )
    assert focused == "composer"


@contextmanager
def responses_held(context: BrowserContext, path: str) -> Iterator[None]:
    """Let requests for a path wait until the end of the block."""
    held: list[Route] = []
    is_over = False

    def hold(route: Route) -> None:
        if is_over:
            route.continue_()
        else:
            held.append(route)

    context.route(path, hold)
    yield
    is_over = True
    for route in held:
        route.continue_()
