"""Messages that are written before the chat page has all that it needs."""

from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import BrowserContext, Route, expect

from support.http.http_server import Server
from support.page.chat_page import ChatPage

HOLD_THE_DATABASE = """
    const released = new Promise((resolve) => { globalThis.release = resolve; });
    const { open } = IDBFactory.prototype;
    IDBFactory.prototype.open = function (...options) {
        const request = open.apply(this, options);
        Object.defineProperty(request, "onsuccess", {
            set: (handle) => request.addEventListener("success", async () => { await released; handle(); }),
        });
        return request;
    };
"""


def test_a_message_is_written_only_when_there_is_a_place_for_it(context: BrowserContext, server: Server) -> None:
    context.add_init_script(HOLD_THE_DATABASE)
    tab = context.new_page()
    tab.goto(server.url)
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
