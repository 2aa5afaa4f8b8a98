"""Conversations that the browser keeps: two tabs at once, a reload in the middle of an answer, and a full storage."""

import pytest
from playwright.sync_api import BrowserContext, expect

from support.http.http_server import Server
from support.page.chat_page import ChatPage
from support.page.holding import HOLD_TIMERS, results_held

pytestmark = pytest.mark.nightly

HOLD_MESSAGES = results_held("IDBIndex", "getAll")
HOLD_LIST = results_held("IDBObjectStore", "getAll")
SILENCE = "() => { BroadcastChannel.prototype.postMessage = () => {}; }"
"""Keeps a tab from sending news to others, as if it had crashed."""


def test_a_conversation_survives_a_reload_with_its_versions(page: ChatPage) -> None:
    page.answered("alpha")
    page.button("Regenerate answer").click()
    expect(page.answer("done").get_by_label("Version 2 of 2")).to_be_visible()
    page.reload()
    expect(page.questions().locator(".bubble")).to_have_text("alpha")
    expect(page.text(page.answer("done"))).to_have_text("alpha")
    expect(page.answer().get_by_label("Version 2 of 2")).to_be_visible()


def test_a_reload_in_the_middle_of_an_answer_keeps_what_has_come(page: ChatPage, server: Server) -> None:
    page.ask("say one and wait")
    expect(page.text()).to_have_text("One two")
    page.wait_until_stored("One  two")
    page.reload()
    answer = page.answer("interrupted")
    expect(page.text(answer)).to_have_text("One two")
    server.wait_for("lmwire_http_requests_in_flight", 1.0)  # that of /metrics itself
    expect(answer.get_by_role("button", name="Regenerate answer")).to_be_enabled()
    answer.get_by_role("button", name="Continue").click()
    expect(page.text(page.answer("running"))).to_have_text("One twoOne two")
    page.button("Stop the answer").click()
    page.answer("stopped")


def test_two_tabs_show_one_another_s_answers_and_overwrite_nothing(
    context: BrowserContext, page: ChatPage, server: Server
) -> None:
    page.answered("alpha")
    other = page.another()
    expect(other.text(other.answer("done"))).to_have_text("alpha")
    page.ask("say one and wait")
    expect(other.text(other.answer("running"))).to_have_text("One two")
    other.button("New chat").click()
    other.answered("beta")
    page.button("Stop the answer").click()
    page.answer("stopped")
    page.reload()
    expect(page.tab.locator(".conversation")).to_have_text(["beta", "alpha"])
    expect(page.questions().locator(".bubble")).to_have_text(["alpha", "say one and wait"])
    other.assert_clean()


def test_two_tabs_that_write_to_one_conversation_at_once_make_two_branches(
    context: BrowserContext, page: ChatPage
) -> None:
    page.answered("alpha")
    other = page.another()
    other.answer("done")
    page.ask("say one and wait")
    other.tab.locator("[data-state=running]").wait_for()
    other.questions().first.get_by_role("button", name="Edit message").click()
    other.tab.get_by_role("textbox", name="Edited message").fill("beta")
    other.tab.keyboard.press("Enter")
    expect(other.text(other.answer("done"))).to_have_text("beta")
    expect(page.text()).to_have_text("One two")
    page.button("Stop the answer").click()
    page.answer("stopped")
    page.reload()
    stored = page.stored()
    assert all(text in stored for text in ("alpha", "say one and wait", "One  two", "beta"))
    expect(page.questions().first.get_by_label("of 2")).to_be_visible()
    other.assert_clean()


def test_a_conversation_that_another_tab_deletes_is_gone(context: BrowserContext, page: ChatPage) -> None:
    page.answered("alpha")
    other = page.another()
    other.button("Delete alpha").click()
    other.button("Delete").click()
    expect(page.questions()).to_have_count(0)
    expect(page.tab.locator(".conversation")).to_have_count(0)
    other.assert_clean()


def test_what_was_deleted_is_not_stored_again(page: ChatPage) -> None:
    page.tab.evaluate(HOLD_TIMERS)
    page.ask("say one and wait")
    expect(page.text()).to_have_text("One two")
    page.button("Delete say one and wait").click()
    page.button("Delete").click()
    expect(page.questions()).to_have_count(0)
    page.tab.evaluate("endTimers()")
    assert page.stored() == "[]"


def test_an_answer_that_another_tab_receives_is_shown_as_running_and_as_interrupted_when_that_tab_goes(
    page: ChatPage, server: Server
) -> None:
    page.ask("say one and wait")
    expect(page.text()).to_have_text("One two")
    page.wait_until_stored("One  two")
    other = ChatPage(page.tab.context, server.url)
    other.tab.get_by_role("link", name="say one and wait").click()
    expect(other.text(other.answer("running"))).to_have_text("One two")
    # A slow browser may end a tab that is closed before the page has handled this.
    page.tab.evaluate("dispatchEvent(new Event('pagehide'))")
    expect(other.answer("interrupted").get_by_role("button", name="Continue")).to_be_visible()
    other.assert_clean()


def test_an_answer_is_shown_as_interrupted_when_its_tab_ends_without_a_word(page: ChatPage) -> None:
    page.ask("say one and wait")
    expect(page.text()).to_have_text("One two")
    other = page.another()
    expect(other.text(other.answer("running"))).to_have_text("One two")
    page.tab.evaluate(SILENCE)
    page.tab.close()
    expect(other.answer("interrupted").get_by_role("button", name="Continue")).to_be_visible()
    other.assert_clean()


def test_an_answer_is_shown_as_running_before_its_tab_reports_it(page: ChatPage) -> None:
    page.ask("say one and wait")
    page.wait_until_stored("One  two")
    page.tab.evaluate(SILENCE)
    other = page.another()
    expect(other.text(other.answer("running"))).to_have_text("One two")
    other.assert_clean()


def test_what_another_tab_writes_while_a_conversation_is_read_is_shown(page: ChatPage, server: Server) -> None:
    page.ask("say one and wait")
    page.wait_until_stored("One  two")
    page.tab.context.add_init_script(HOLD_MESSAGES)
    other = ChatPage(page.tab.context, server.url)
    other.tab.get_by_role("link", name="say one and wait").click()
    other.tab.evaluate("reached")
    page.button("Stop the answer").click()
    page.answer("stopped")
    other.tab.evaluate("release()")
    expect(other.text(other.answer("stopped"))).to_have_text("One two")
    other.assert_clean()


def test_a_conversation_that_another_tab_begins_while_the_list_is_read_is_shown(page: ChatPage, server: Server) -> None:
    page.answered("alpha")
    page.tab.context.add_init_script(HOLD_LIST)
    starting = page.tab.context.new_page()
    starting.goto(server.url)
    starting.evaluate("reached")
    page.button("New chat").click()
    page.answered("beta")
    starting.evaluate("release()")
    expect(starting.locator(".conversation")).to_have_text(["beta", "alpha"])


def test_the_conversation_that_was_chosen_last_is_open(page: ChatPage, server: Server) -> None:
    choose_a_conversation_that_is_held(page, server)
    page.button("New chat").click()
    page.tab.evaluate("release()")
    page.answered("beta")
    expect(page.questions().locator(".bubble")).to_have_text(["beta"])
    expect(page.tab.locator(".conversation")).to_have_text(["beta", "alpha"])


def test_a_message_goes_to_the_conversation_that_was_chosen_last(page: ChatPage, server: Server) -> None:
    choose_a_conversation_that_is_held(page, server)
    page.ask("beta")
    expect(page.composer).not_to_be_editable()
    page.tab.evaluate("release()")
    expect(page.questions().locator(".bubble")).to_have_text(["alpha", "beta"])
    expect(page.text(page.answer("done"))).to_have_text("beta")
    expect(page.tab.locator(".conversation")).to_have_text(["alpha"])


def choose_a_conversation_that_is_held(page: ChatPage, server: Server) -> None:
    """Choose the conversation "alpha" after a reload. It opens when the test calls `release`."""
    page.answered("alpha")
    page.stored()
    page.tab.goto("about:blank")
    page.tab.context.add_init_script(HOLD_MESSAGES)
    page.tab.goto(server.url)
    page.tab.get_by_role("link", name="alpha").click()
    page.tab.evaluate("reached")


def test_a_full_storage_is_reported_and_the_conversation_goes_on(page: ChatPage) -> None:
    page.tab.evaluate(
        """() => {
            const { put } = IDBObjectStore.prototype;
            IDBObjectStore.prototype.put = function (record) {
                if (this.name === "messages") throw new DOMException("full", "QuotaExceededError");
                return put.call(this, record);
            };
        }"""
    )
    expect(page.text(page.answered("alpha"))).to_have_text("alpha")
    expect(page.tab.locator("[data-banner=notice]")).to_contain_text("storage is full")


def test_the_open_conversation_can_be_saved_as_markdown(page: ChatPage) -> None:
    page.answered("alpha **beta**")
    page.button("Settings").click()
    with page.tab.expect_download() as download:
        page.button("Export this conversation").click()
    assert download.value.path().read_text() == "## user\n\nalpha **beta**\n\n## tests/mock-7b\n\nalpha **beta**\n"


def test_all_conversations_can_be_saved_as_a_file_and_deleted(page: ChatPage) -> None:
    page.answered("alpha")
    page.button("Settings").click()
    with page.tab.expect_download() as download:
        page.button("Export conversations").click()
    assert '"content": "alpha"' in download.value.path().read_text()
    page.button("Delete all conversations").click()
    page.button("Really delete all").click()
    page.button("Close").click()
    expect(page.tab.locator(".conversation")).to_have_count(0)
    assert page.stored() == "[]"
