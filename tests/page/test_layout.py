"""Windows of each size: what is in view, what lies over it, and where the keyboard is."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, ViewportSize, expect

from support.http.http_server import Server
from support.page.chat_page import ChatPage, profile

pytestmark = pytest.mark.nightly

DESKTOP: ViewportSize = {"width": 1180, "height": 800}
PHONE: ViewportSize = {"width": 360, "height": 740}
GROW_TWICE = """() => new Promise((resolve) => {
    const view = document.querySelector(".transcript");
    const grow = () => Object.assign(view.firstElementChild.lastElementChild.style, {
        paddingBottom: `${(parseInt(view.firstElementChild.lastElementChild.style.paddingBottom) || 0) + 900}px`,
    });
    view.addEventListener("scroll", grow, { once: true, capture: true });
    grow();
    requestAnimationFrame(() => requestAnimationFrame(() => requestAnimationFrame(() =>
        resolve(view.scrollHeight - view.scrollTop - view.clientHeight))));
})"""
"""Makes the last message longer, and again before the page learns that it has scrolled. Returns what is out of view."""
SEED = """(count) => new Promise((resolve) => {
    indexedDB.open("lmwire").onsuccess = ({ target: { result } }) => {
        const all = result.transaction("conversations", "readwrite");
        for (let n = 0; n < count; n += 1) all.objectStore("conversations").put(
            { id: `c${n}`, title: `Talk ${n} ${"about many things ".repeat(4)}`, created: n, updated: n, leaf: null });
        all.oncomplete = () => { result.close(); resolve(); };
    };
})"""
"""Stores conversations as a user of some months has them."""


@pytest.fixture
def phone(browser: Browser, server: Server) -> Iterator[ChatPage]:
    with profile(browser, viewport=PHONE, has_touch=True, is_mobile=True) as context:
        page = ChatPage(context, server.url)
        yield page
        page.assert_clean()


def test_the_end_stays_in_view_while_an_answer_grows(page: ChatPage) -> None:
    page.answered("sort a list")
    assert page.tab.evaluate(GROW_TWICE) < 1
    expect(page.button("Scroll to the end")).to_have_count(0)


def test_reasoning_opens_where_it_is_clicked(page: ChatPage) -> None:
    page.answered("sort a list")
    reasoning = page.answered("think at length").locator(".reasoning")
    reasoning.locator("summary").click()
    expect(page.button("Scroll to the end")).to_be_visible()
    expect(reasoning.locator("summary")).to_be_in_viewport(ratio=1)


def test_the_list_of_conversations_fits_the_window(page: ChatPage) -> None:
    sidebar = page.tab.get_by_role("navigation", name="Conversations")
    expect(sidebar).to_be_visible()
    page.tab.set_viewport_size(PHONE)
    expect(sidebar).to_have_count(0)
    page.tab.set_viewport_size(DESKTOP)
    expect(sidebar).to_be_visible()


def test_on_a_phone_the_keyboard_stays_in_the_open_list(phone: ChatPage) -> None:
    phone.button("Show conversations").click()
    expect(phone.button("New chat")).to_be_focused()
    phone.button("Settings").focus()  # it is below the list
    expect(phone.button("New chat")).to_be_focused()
    phone.tab.keyboard.press("Escape")
    expect(phone.button("Show conversations")).to_be_focused()


def test_on_a_phone_enter_begins_a_line_and_a_chat_begins_without_the_list(phone: ChatPage) -> None:
    expect(phone.tab.get_by_role("region", name="Messages")).not_to_contain_text("Shift")
    phone.composer.fill("one")
    phone.composer.press("Enter")
    phone.composer.press_sequentially("two")
    phone.button("Send message").click()
    expect(phone.questions().locator(".bubble")).to_have_text("one\ntwo")
    phone.answer("done")
    phone.button("New chat").click()
    expect(phone.questions()).to_have_count(0)


def test_a_new_user_is_told_how_to_begin(page: ChatPage) -> None:
    expect(page.tab.get_by_role("region", name="Messages")).to_contain_text(
        "Enter sends it, Shift + Enter starts a new line."
    )


def test_many_conversations_scroll_in_their_list(page: ChatPage) -> None:
    page.tab.evaluate(SEED, 30)
    page.tab.reload()
    entries = page.tab.locator(".conversation")
    expect(entries).to_have_count(30)
    entries.last.scroll_into_view_if_needed()
    expect(entries.last.get_by_role("link")).to_be_in_viewport(ratio=1)
    expect(page.button("New chat")).to_be_in_viewport(ratio=1)
    expect(entries.last.get_by_role("link")).to_have_attribute("title", "Talk 0 " + "about many things " * 4)


def test_the_title_of_a_conversation_has_the_width_of_the_list(page: ChatPage) -> None:
    page.tab.evaluate(SEED, 2)
    page.tab.reload()
    entry = page.tab.locator(".conversation").first
    entry.get_by_role("link").click()
    whole, title = entry.bounding_box(), entry.get_by_role("link").bounding_box()
    assert whole and title and title["width"] == whole["width"]
    entry.hover()
    expect(entry.get_by_role("button", name="Delete")).to_be_visible()


def test_the_keyboard_stays_in_the_list_while_conversations_are_renamed_and_deleted(page: ChatPage) -> None:
    page.tab.evaluate(SEED, 2)
    page.tab.reload()
    first = page.tab.locator(".conversation").first
    rename = first.get_by_role("button", name="Rename")
    rename.press("Enter")
    page.tab.get_by_role("textbox", name="Title").fill("Another title")
    page.tab.keyboard.press("Escape")
    expect(first.get_by_role("link")).to_be_focused()
    expect(first).to_contain_text("Talk 1")
    delete = first.get_by_role("button", name="Delete")
    delete.press("Enter")
    expect(page.button("Keep")).to_be_focused()
    page.tab.keyboard.press("Enter")
    expect(first.get_by_role("link")).to_be_focused()
    delete.press("Enter")
    expect(page.button("Keep")).to_be_focused()
    page.tab.keyboard.press("Shift+Tab")
    page.tab.keyboard.press("Enter")
    expect(page.button("New chat")).to_be_focused()
    expect(page.tab.locator(".conversation")).to_have_count(1)


def test_a_long_word_breaks_on_a_phone(phone: ChatPage) -> None:
    phone.answered("https://example.org/" + "y" * 300)
    right = "(all) => Math.max(...all.map((each) => each.getBoundingClientRect().right))"
    assert phone.tab.locator(".message *").evaluate_all(right) <= PHONE["width"]


def test_the_fields_of_the_settings_stand_in_rows(page: ChatPage) -> None:
    page.button("Settings").click()
    expect(page.tab.get_by_role("dialog", name="Settings")).to_be_visible()
    boxes = [page.tab.locator(f"[data-input={name}]").bounding_box() for name in ("max_tokens", "seed", "effort")]
    assert len({(round(box["y"]), round(box["height"])) for box in boxes if box}) == 1
