"""Help for those who have many conversations: the search, files of other programs, presets, and messages that wait."""

import json

import pytest
from playwright.sync_api import Locator, expect

from support.page.chat_page import ChatPage, body_of

from .test_importing import CHATGPT

pytestmark = pytest.mark.nightly


def test_the_search_finds_titles_and_messages_and_needs_no_mouse(page: ChatPage) -> None:
    page.answered("alpha in a haystack with a needle")
    page.button("New chat").click()
    page.answered("beta")
    page.tab.keyboard.press("Control+k")
    field = page.tab.get_by_role("searchbox", name="Search conversations")
    expect(field).to_be_focused()
    results = page.tab.locator(".results li")
    expect(results).to_have_count(2)
    field.fill("NEEDLE")
    expect(results).to_have_count(1)
    expect(results.locator("mark")).to_have_text("needle")
    field.press("ArrowDown")
    page.tab.keyboard.press("Enter")
    expect(page.questions().locator(".bubble")).to_have_text("alpha in a haystack with a needle")
    page.button("Search").click()
    field.fill("nowhere")
    expect(page.tab.get_by_role("dialog")).to_contain_text("Nothing found.")


def test_a_file_of_conversations_is_added_once(page: ChatPage) -> None:
    page.button("Settings").click()
    file = page.tab.locator("[data-input=import]")
    note = page.tab.locator("[data-note=import]")
    for expected in ("1 of 1 conversations", "0 of 1 conversations"):
        content = json.dumps([CHATGPT]).encode()
        file.set_input_files({"name": "conversations.json", "mimeType": "application/json", "buffer": content})
        expect(note).to_contain_text(expected)
    file.set_input_files({"name": "a.json", "mimeType": "application/json", "buffer": b"{"})
    expect(note).to_contain_text("This file is not JSON.")
    page.button("Close").click()
    expect(page.tab.locator(".period")).to_have_text("November 2023")
    page.tab.get_by_role("link", name="Sorting").click()
    expect(page.text()).to_have_text("Or so.")
    expect(page.answer().get_by_label("Version 2 of 2")).to_be_visible()
    page.reload()
    expect(page.text()).to_have_text("Or so.")
    expect(page.text(page.answered("alpha"))).to_have_text("alpha")
    expect(page.tab.locator(".period")).to_have_text("Today")


def test_settings_are_saved_as_a_preset_and_chosen_again(page: ChatPage) -> None:
    page.set(system="Be brief.", temperature="0.3")
    page.button("Settings").click()
    page.tab.get_by_role("textbox", name="Name of the preset").fill("Brief")
    page.button("Save as preset").click()
    page.button("Reset all").click()
    page.button("Brief").click()
    expect(page.tab.locator("[data-input=temperature]")).to_have_value("0.3")
    page.button("Close").click()
    with page.tab.expect_request("**/chat/completions") as sent:
        page.answered("alpha")
    assert (body_of(sent.value)["temperature"], body_of(sent.value)["messages"][0]["content"]) == (0.3, "Be brief.")
    page.tab.reload()
    page.button("Settings").click()
    page.button("Delete the preset Brief").click()
    expect(page.button("Brief")).to_have_count(0)


def queued(page: ChatPage) -> Locator:
    """Return the messages that wait for the end of an answer."""
    return page.tab.get_by_role("list", name="Messages that wait").get_by_role("listitem")


def test_a_message_that_is_written_during_an_answer_is_sent_after_it(page: ChatPage) -> None:
    page.ask("How do I sort a list of people by age?")  # its answer takes some time
    page.answer("running")
    for text in ("alpha", "beta"):
        page.composer.fill(text)
        page.composer.press("Enter")
    expect(page.composer).to_have_value("")
    expect(page.questions().locator(".bubble")).to_have_text(
        ["How do I sort a list of people by age?", "alpha", "beta"]
    )
    expect(page.text(page.answer("done"))).to_have_text("beta")
    expect(queued(page)).to_have_count(0)


def test_after_an_answer_that_was_stopped_the_user_decides_on_the_messages_that_wait(page: ChatPage) -> None:
    page.ask("say one and wait")
    expect(page.text()).to_have_text("One two")
    for text in ("alpha", "beta"):
        page.composer.fill(text)
        page.button("Send after this answer").click()
    expect(queued(page)).to_have_text(["alpha", "beta"])
    page.button("New chat").click()
    expect(queued(page)).to_have_count(0)
    page.tab.get_by_role("link", name="say one and wait").click()
    page.button("Stop the answer").click()
    page.answer("stopped")
    queued(page).last.get_by_role("button", name="Remove from the queue").click()
    expect(queued(page).locator(".queued-text")).to_have_text("alpha")
    page.button("Send now").click()
    expect(page.text(page.answer("done"))).to_have_text("alpha")
    expect(page.questions()).to_have_count(2)
