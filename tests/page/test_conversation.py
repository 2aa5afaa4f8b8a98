"""A conversation on the chat page: asking, streaming, stopping, versions, and what an answer shows."""

import json

import pytest
from playwright.sync_api import BrowserContext, expect

from support.http.http_server import Server
from support.page.chat_page import ChatPage, body_of
from support.page.holding import HOLD_TIMERS

pytestmark = pytest.mark.nightly

WEATHER = [{"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}]


def test_code_is_copied_by_its_button(context: BrowserContext, page: ChatPage, server: Server) -> None:
    context.grant_permissions(["clipboard-read", "clipboard-write"], origin=server.url)
    page.answered("sort a list")
    page.tab.evaluate(HOLD_TIMERS)
    page.text().get_by_role("button", name="Copy", exact=True).click()
    expect(page.text().get_by_role("button", name="Copied")).to_be_visible()
    copied = page.tab.evaluate("navigator.clipboard.readText()")
    assert copied.startswith("def by_age(people):\n    return sorted")
    page.tab.evaluate("endTimers()")
    expect(page.text().get_by_role("button", name="Copy", exact=True)).to_be_visible()


def test_an_answer_and_a_message_are_copied_and_say_so(context: BrowserContext, page: ChatPage, server: Server) -> None:
    context.grant_permissions(["clipboard-read", "clipboard-write"], origin=server.url)
    page.answered("alpha **beta**")
    page.questions().hover()
    for name in ("Copy answer", "Copy message"):
        page.tab.evaluate("navigator.clipboard.writeText('')")
        page.tab.evaluate(HOLD_TIMERS)
        page.button(name).click()
        expect(page.button("Copied")).to_be_visible()
        assert page.tab.evaluate("navigator.clipboard.readText()") == "alpha **beta**"
        page.tab.evaluate("endTimers()")
        expect(page.button(name)).to_be_visible()
    expect(page.tab.locator("#announcements p").last).to_have_text("Copied")


def test_reasoning_is_folded_above_the_answer(page: ChatPage) -> None:
    reasoning = page.answered("sort a list").locator(".reasoning")
    expect(reasoning.locator("strong")).to_be_hidden()
    reasoning.get_by_text("Reasoning").click()
    expect(reasoning.locator("strong")).to_have_text("sorting")


def test_escape_stops_an_answer_in_the_middle_of_code(page: ChatPage) -> None:
    page.ask("wait in code")
    expect(page.text().locator("code")).to_have_text("first()\nsecond()\n")
    page.tab.keyboard.press("Escape")
    page.answer("stopped")
    expect(page.text().locator("code")).to_have_text("first()\nsecond()")


def test_an_answer_that_has_reached_its_limit_offers_to_continue(page: ChatPage) -> None:
    answer = page.answered("cut off")
    expect(answer).to_contain_text("reached its limit")
    expect(answer.get_by_role("button", name="Continue")).to_be_visible()


def test_another_version_of_an_answer_stands_beside_the_first(page: ChatPage) -> None:
    page.answered("which version")
    first = page.text().inner_text()
    page.button("Regenerate answer").click()
    expect(page.answer().get_by_label("Version 2 of 2")).to_be_visible()
    expect(page.text(page.answer("done"))).not_to_have_text(first)
    page.button("Earlier version").click()
    expect(page.text()).to_have_text(first)
    expect(page.button("Earlier version")).to_be_disabled()


def test_an_edited_message_begins_a_branch_and_the_old_one_remains(page: ChatPage) -> None:
    page.answered("alpha")
    page.answered("beta")
    page.questions().first.get_by_role("button", name="Edit message").click()
    field = page.tab.get_by_role("textbox", name="Edited message")
    expect(field).to_be_focused()
    field.fill("gamma")
    field.press("Enter")
    expect(page.questions()).to_have_count(1)
    expect(page.text(page.answer("done"))).to_have_text("gamma")
    page.questions().first.get_by_role("button", name="Earlier version").click()
    expect(page.questions().locator(".bubble")).to_have_text(["alpha", "beta"])
    expect(page.text()).to_have_text("beta")


def test_conversations_are_switched_renamed_and_deleted(page: ChatPage) -> None:
    page.answered("the first talk")
    page.button("New chat").click()
    expect(page.tab.get_by_role("heading", name="What is on your mind?")).to_be_visible()
    page.answered("the second talk")
    entries = page.tab.locator(".conversation")
    expect(entries).to_have_text(["the second talk", "the first talk"])
    page.tab.get_by_role("link", name="the first talk").click()
    expect(page.questions().locator(".bubble")).to_have_text(["the first talk"])
    page.button("Rename the first talk").click()
    page.tab.get_by_role("textbox", name="Title").fill("A better title")
    page.tab.keyboard.press("Enter")
    expect(page.tab).to_have_title("A better title · lmwire")
    page.button("Delete A better title").click()
    page.button("Delete").click()
    expect(entries).to_have_text(["the second talk"])


def test_a_call_that_the_model_has_not_finished_is_not_offered(page: ChatPage) -> None:
    page.set(tools=json.dumps(WEATHER))
    answer = page.answered("half a call")
    expect(answer).to_contain_text("The model has not finished this call.")
    expect(page.button("Send result")).to_have_count(0)
    with page.tab.expect_request("**/chat/completions") as sent:
        page.answered("alpha")
    assert [message["role"] for message in body_of(sent.value)["messages"]] == ["user", "user"]


def test_a_schema_that_is_not_json_is_reported_and_not_used(page: ChatPage) -> None:
    page.set(isJson=True, schema='{"type": "object"}')
    page.button("Settings").click()
    page.tab.locator("[data-input=schema]").fill('{"type": ')
    expect(page.tab.locator("#schema-problem")).to_contain_text("This is not JSON")
    page.button("Close").click()
    assert json.loads(page.tab.evaluate("localStorage['lmwire.settings']"))["schema"] == '{"type": "object"}'


def test_a_number_out_of_range_is_reported_and_any_other_is_used(page: ChatPage) -> None:
    page.set(temperature="0.75", top_p="0.92")
    page.button("Settings").click()
    field = page.tab.locator("[data-input=temperature]")
    expect(field).to_have_value("0.75")
    field.fill("5")
    field.blur()
    expect(page.tab.locator("#temperature-problem")).to_contain_text("it must be a number from 0 to 2")
    expect(field).to_have_value("5")
    page.button("Close").click()
    assert json.loads(page.tab.evaluate("localStorage['lmwire.settings']"))["sampling"] == {"top_p": 0.92}


def test_settings_that_are_easily_forgotten_are_named_beside_the_message(page: ChatPage) -> None:
    page.set(isJson=True, system="Be brief.", tools=json.dumps(WEATHER))
    expect(page.tab.locator(".composer")).to_contain_text("System prompt · JSON · Tools")
    page.set(isJson=False, system=" ", tools="")
    expect(page.tab.locator(".composer")).not_to_contain_text("JSON")


def test_files_that_are_added_at_once_are_all_kept(page: ChatPage) -> None:
    page.composer.evaluate(
        """(field) => {
            for (const name of ["one.txt", "two.txt"]) {
                const clipboardData = new DataTransfer();
                clipboardData.items.add(new File([name], name, { type: "text/plain" }));
                field.dispatchEvent(new ClipboardEvent("paste", { clipboardData, bubbles: true, cancelable: true }));
            }
        }"""
    )
    expect(page.tab.locator(".composer .attachment")).to_have_text(["one.txt", "two.txt"])


def test_an_error_says_what_the_user_can_do(page: ChatPage) -> None:
    with page.reporting_an_error():
        page.ask("too much")
    problem = page.answer("failed").get_by_role("alert")
    expect(problem.locator("p")).to_have_text(
        "The prompt has 5000 tokens, and the context holds 4096. Start a new chat, or leave out the oldest messages."
    )
    expect(page.button("Copy answer")).to_have_count(0)


def test_the_buttons_of_an_error_do_what_it_advises(page: ChatPage) -> None:
    with page.reporting_an_error():
        page.ask("too much")
    with page.reporting_an_error(), page.tab.expect_request("**/chat/completions") as sent:
        page.button("Leave out the oldest messages").click()
    assert body_of(sent.value)["truncate"] == "left"
    expect(page.tab.locator(".composer")).to_contain_text("Oldest messages left out")
    with page.tab.expect_request("**/chat/completions") as later:
        page.answered("alpha")
    assert body_of(later.value)["truncate"] == "left"
    with page.reporting_an_error():
        page.ask("too much")
        page.answer("failed")
    page.answer().get_by_role("button", name="New chat").click()
    expect(page.questions()).to_have_count(0)
    expect(page.tab.locator(".composer")).not_to_contain_text("left out")


def test_a_note_belongs_to_the_chat_that_caused_it(page: ChatPage) -> None:
    page.answered("alpha")
    page.tab.locator("[data-input=files]").set_input_files(
        {"name": "tool.exe", "mimeType": "application/x-msdownload", "buffer": b"MZ"}
    )
    note = page.tab.locator("[data-banner=notice]")
    expect(note).to_contain_text("tool.exe")
    page.button("New chat").click()
    expect(note).to_have_count(0)
    page.tab.get_by_role("link", name="alpha").click()
    expect(note).to_contain_text("tool.exe")
    page.button("Dismiss").click()
    expect(note).to_have_count(0)


def test_an_empty_chat_has_examples_and_the_facts_of_its_model(page: ChatPage) -> None:
    expect(page.tab.locator("[data-facts]")).to_contain_text("tests/mock-7b")
    example = page.tab.locator("[data-action=example]").first
    text = example.inner_text()
    example.click()
    expect(page.questions().locator(".bubble")).to_have_text(text)
    page.answer("done")
    expect(page.tab.locator("[data-action=example]")).to_have_count(0)


def test_settings_show_their_ranges_and_are_reset_together(page: ChatPage) -> None:
    page.set(temperature="0.3", system="Be brief.", isJson=True)
    page.button("Settings").click()
    expect(page.tab.get_by_role("spinbutton", name="Temperature 0 to 2")).to_have_value("0.3")
    page.button("Reset all").click()
    expect(page.tab.locator("[data-input=temperature]")).to_have_value("")
    expect(page.tab.locator("[data-input=system]")).to_have_value("")
    expect(page.button("Reset all")).to_have_count(0)
    page.button("Close").click()
    with page.tab.expect_request("**/chat/completions") as sent:
        page.answered("alpha")
    assert not {"temperature", "response_format"} & body_of(sent.value).keys()


def test_the_keyboard_alone_suffices(page: ChatPage) -> None:
    page.answered("alpha")
    page.tab.keyboard.press("Control+Shift+O")
    expect(page.questions()).to_have_count(0)
    page.tab.locator("body").press("Tab")
    page.button("Settings").focus()
    page.tab.keyboard.press("/")
    expect(page.composer).to_be_focused()
    page.composer.type("one")
    page.composer.press("Shift+Enter")
    page.composer.type("two")
    page.composer.press("Enter")
    expect(page.questions().locator(".bubble")).to_have_text("one\ntwo")
    page.answer("done")


def test_a_screen_reader_is_given_each_block_once_it_is_complete(page: ChatPage) -> None:
    region = page.tab.locator("[aria-live=polite]#announcements")
    page.answered("sort a list")
    expect(region).to_contain_text("python  def by_age")  # without the name of the button
    expect(region).to_contain_text("Function Time Stable")
    expect(region.locator("p").first).to_have_text("Sorting in Python")
    expect(region.locator("p").last).to_have_text("See the documentation.")
